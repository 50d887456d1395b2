"""A small compiler from PyTorch programs to CUDA C++: what the reference agent writes with.

::

    source text --trace--> ATen graph --lower--> plan of kernels --render--> model_new.py

`program.compile_program` is the way in. Values between kernels are lazy (`values`): an elementwise
operator or a view costs nothing until a kernel evaluates it at an index, so chains of them fuse
into whatever kernel stores the result.
"""
