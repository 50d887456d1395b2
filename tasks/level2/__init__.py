"""KernelBench Level 2, one file a task."""
