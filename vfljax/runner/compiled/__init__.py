"""An experiment's compiled programs: what they compute, how they are made."""
