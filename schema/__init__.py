"""What a run *is*: plain values and tables. No SQLite, no threads, no clock, no randomness."""
