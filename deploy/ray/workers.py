# SPDX-License-Identifier: Apache-2.0
"""A wpk-worker on each node of a Ray cluster, until all of them have left: workers.py OPTION...

    python3 deploy/ray/workers.py --cpu --coordinator tls+tcp://tuner:7400 --exit-when-idle 30
"""
import subprocess
import sys

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


@ray.remote
class Worker:
    def work(self, options):
        return subprocess.run(["wpk-worker", *options], check=False).returncode


ray.init()  # the cluster of RAY_ADDRESS, else one on this machine
nodes = [node for node in ray.nodes() if node["Alive"]]
# All CPUs of a node: nothing else that Ray starts disturbs what is timed.
workers = [Worker.options(num_cpus=node["Resources"].get("CPU", 0), num_gpus=node["Resources"].get("GPU", 0),
                          scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote()
           for node in nodes]
sys.exit(max(ray.get([worker.work.remote(sys.argv[1:]) for worker in workers])))
