"""Refuses experiments that cannot work, before compiling or writing."""
