"""What cannot work is refused before anything is compiled or written."""
