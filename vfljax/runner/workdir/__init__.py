"""The work directory: what a run keeps, so that no kill can spoil it."""
