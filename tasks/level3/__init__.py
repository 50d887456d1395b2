"""KernelBench Level 3, one file a task."""
