"""What the computer is told: devices, compilers, files, signals."""
