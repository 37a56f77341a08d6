"""File layers under SQLite. None of them knows what a run is."""
