"""The command line: arguments, lists, help, progress."""
