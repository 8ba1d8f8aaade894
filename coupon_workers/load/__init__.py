"""Load over HTTP with a tally of every answer: what the demo, the replay and the bench send."""
