"""t3k against its peers, in one process, by turns."""
