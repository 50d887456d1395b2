"""The judge as a service: HTTP in front of a `JudgePool`, with a journal behind it.

`messages` is what both ends say, `access` who may say it, `desk` the queue and its journal, `app`
the routes, `server` the process. The other end is `kernelgym.client`, which needs no torch.
"""
