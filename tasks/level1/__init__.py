"""KernelBench Level 1, one file a task."""
