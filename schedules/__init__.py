"""The table of jobs and the process that keeps to it. A schedule only enqueues (DESIGN 4)."""
