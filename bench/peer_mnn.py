# SPDX-License-Identifier: Apache-2.0
"""MNN as a peer: the ONNX model, converted, as a session in f32 (precision high).

Layouts `any`: input and output lie in MNN's NC4HW4 where the converted model brings them there;
the conversions that it has at both ends are cut off. `fixed`: they are part of each call.
"""

import pathlib
import tempfile

import MNN
import _tools
import numpy as np

import peer_python

EXPR = MNN.expr


def cut_conversions(path):
    """Rewrite the model so that it begins and ends in NC4HW4. False: it does not convert."""
    variables = EXPR.load_as_dict(path)
    conversions = {name for name, v in variables.items() if v.op_type == "ConvertTensor"}
    entries = [name for name in conversions
               if name != "Y" and variables[name].inputs[0].name == "X"]
    if not entries or "Y" not in conversions:
        return False
    x = EXPR.placeholder(variables["X"].shape, EXPR.NC4HW4, EXPR.float)
    y = variables["Y"].inputs[0]
    variables[entries[0]].replace(x)
    x.name, y.name = "X", "Y"
    EXPR.save([y], path)
    return True


class Peer:
    def __init__(self, path, _node, _constants, x, shape, fixed, threads):
        with tempfile.TemporaryDirectory() as folder:
            model = str(pathlib.Path(folder, "model.mnn"))
            _tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", path, "--MNNModel",
                               model, "--bizCode", "bench"])
            self.choice = "NC4HW4" if not fixed and cut_conversions(model) else "NCHW"
            self.interpreter = MNN.Interpreter(model)
        self.session = self.interpreter.createSession(
            {"backend": "CPU", "numThread": threads, "precision": "high"})
        self.shape = shape
        self.x = self.interpreter.getSessionInput(self.session)
        self.y = self.interpreter.getSessionOutput(self.session)
        self.host_x, self.host_y = self.host(x), self.host(np.zeros(shape, np.float32))
        self.x.copyFrom(self.host_x)

    @staticmethod
    def host(values):
        return MNN.Tensor(values.shape, MNN.Halide_Type_Float, values,
                          MNN.Tensor_DimensionType_Caffe)

    def run(self):
        self.interpreter.runSession(self.session)

    def output(self):
        self.y.copyToHostTensor(self.host_y)
        return np.array(self.host_y.getNumpyData()).reshape(self.shape)

    def touch(self):
        self.x.copyToHostTensor(self.host_x)
        self.y.copyToHostTensor(self.host_y)


if __name__ == "__main__":
    peer_python.serve("MNN " + MNN.version(), Peer)
