# SPDX-License-Identifier: Apache-2.0
"""PyTorch's times of the same operators, where it is installed with CUDA: cuDNN and cuBLAS with their own choices
(`eager`, cuDNN's search on), and compiled. f32 means f32: TF32 is off."""
import statistics


def make(torch, op):
    """A function of no arguments that computes the operator once."""
    functional = torch.nn.functional

    def tensor(*shape):
        return torch.randn(*shape, device="cuda")
    if op["type"] in ("conv2d", "depthwise_conv2d"):
        channels = op["input"][1]
        groups = channels if op["type"] == "depthwise_conv2d" else op["groups"]
        x = tensor(*op["input"])
        w = tensor(op.get("filters", channels), channels // groups, *op["kernel"])
        b = tensor(w.shape[0])
        padding = op["padding"][0], op["padding"][1]

        def run():
            y = functional.conv2d(x, w, b, op["stride"], padding, op["dilation"], groups)
            return functional.relu_(y) if op.get("activation") == "relu" else y
        return run
    if op["type"] == "matmul":
        a, b = tensor(*op["a"]), tensor(*op["b"])
        return lambda: a @ b
    x = tensor(*op["shape"])
    if op["type"] == "softmax":
        return lambda: functional.softmax(x, -1)
    scale, shift = tensor(op["shape"][1]), tensor(op["shape"][1])
    return lambda: functional.layer_norm(x, op["shape"][1:], scale, shift, op["eps"])


def time_ns(torch, run, samples=30):
    """The median of a call, of which as many as fill a millisecond are timed together."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def elapsed(calls):
        start.record()
        for _ in range(calls):
            run()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e6 / calls
    for _ in range(5):
        run()
    calls = max(1, min(200, int(1e6 / max(1.0, elapsed(10)))))
    return statistics.median(elapsed(calls) for _ in range(samples))


def measure(op):
    """[(name, ns)], cuDNN's first choice first, or [] without PyTorch or a GPU that it can use."""
    try:
        import torch  # pylint: disable=import-outside-toplevel
        if not torch.cuda.is_available():
            return []
    except ImportError:
        return []
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    run = make(torch, op)
    times = []
    with torch.no_grad():
        torch.backends.cudnn.benchmark = False
        times.append(("torch-first-choice", time_ns(torch, run)))
        torch.backends.cudnn.benchmark = True
        times.append(("torch-" + torch.__version__, time_ns(torch, run)))
        try:
            times.append(("torch-compiled", time_ns(torch, torch.compile(run, mode="max-autotune-no-cudagraphs"))))
        except Exception as error:  # pylint: disable=broad-except # what a compiler throws is no reason to stop
            print("torch.compile: %s" % str(error).split("\n", maxsplit=1)[0])
    return times
