"""An experiment's programs: what they compute, and how they are made."""
