"""Every invariant as a question to the stores that can be asked at any time."""
