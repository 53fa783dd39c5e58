# SPDX-License-Identifier: Apache-2.0
"""A wpk-worker on each node of a Ray cluster, until all of them have left: workers.py OPTION...

    python3 deploy/ray/workers.py --cpu --coordinator tls+tcp://tuner:7400 --exit-when-idle 30

The exit code is 0 if that of each worker is.
"""
import subprocess
import sys

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


@ray.remote
class Worker:
    def work(self, options):
        return subprocess.run(["wpk-worker", *options], check=False).returncode


def code_of(result):
    try:
        return ray.get(result)
    except ray.exceptions.RayError as error:  # the end of this script would kill the other workers
        print(error, file=sys.stderr)
        return 1


ray.init()  # the cluster of RAY_ADDRESS, else one on this machine
# Ray starts nothing on a node without CPUs, such as the head of many clusters.
nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) > 0]
# All CPUs of a node: nothing else that Ray starts disturbs what is timed.
workers = [Worker.options(num_cpus=node["Resources"]["CPU"], num_gpus=node["Resources"].get("GPU", 0),
                          scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote()
           for node in nodes]
codes = [code_of(result) for result in [worker.work.remote(sys.argv[1:]) for worker in workers]]
sys.exit(any(codes) if codes else "workers.py: no node has a CPU")
