"""What is typed at the command line, and what is said there."""
