"""What the processes of a crew do in tests; a module of its own, for they are spawned."""

import os
import time


def serve(connection, greeting=""):
    while (job := connection.recv()) is not None:
        if job == "die":
            os._exit(3)
        if job == "hang":
            time.sleep(60)
        if isinstance(job, str) and job.startswith("sleep"):
            time.sleep(float(job[5:]))
        connection.send((greeting, job, os.getpid()))
        if job == "die later":
            connection.recv()
            os._exit(4)
