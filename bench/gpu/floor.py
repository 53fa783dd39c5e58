# SPDX-License-Identifier: Apache-2.0
"""Bounds of every kernel: the time of twelve empty launches, and of copying 256 MB. By the driver alone."""
import ctypes
import statistics

PTX = b"""
.version 7.0
.target sm_50
.address_size 64
.visible .entry empty() { ret; }
.visible .entry copy(.param .u64 to, .param .u64 from, .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .f32 %f<5>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [from];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd3, %r5, 16;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd5];
  st.global.v4.f32 [%rd4], {%f1, %f2, %f3, %f4};
DONE:
  ret;
}
"""
THREADS = 256


class Driver:
    def __init__(self, library):
        self.cuda = ctypes.CDLL(library)
        self.call("cuInit", 0)
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        context = self.new("cuDevicePrimaryCtxRetain", device)
        self.call("cuCtxPushCurrent_v2", context)
        self.module = self.new("cuModuleLoadData", PTX)
        self.stream = self.new("cuStreamCreate", 0)
        self.events = [self.new("cuEventCreate", 0) for _ in range(2)]

    def call(self, name, *arguments):
        result = getattr(self.cuda, name)(*arguments)
        if result != 0:
            raise OSError("%s: CUDA error %d" % (name, result))

    def new(self, name, *arguments):
        made = ctypes.c_void_p()
        self.call(name, ctypes.byref(made), *arguments)
        return made

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def launcher(self, name, blocks, *arguments):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.module, name.encode())
        pointers = (ctypes.c_void_p * max(1, len(arguments)))(*[ctypes.addressof(a) for a in arguments])
        return lambda: self.call("cuLaunchKernel", function, blocks, 1, 1, THREADS, 1, 1, 0, self.stream, pointers, None)

    def time_ns(self, run):
        elapsed = ctypes.c_float()
        self.call("cuEventRecord", self.events[0], self.stream)
        run()
        self.call("cuEventRecord", self.events[1], self.stream)
        self.call("cuEventSynchronize", self.events[1])
        self.call("cuEventElapsedTime", ctypes.byref(elapsed), *self.events)
        return elapsed.value * 1e6


def measure(library, size, samples):
    """{"launches_ns": of twelve empty launches, "copy_bytes_per_s": read and written}"""
    driver = Driver(library)
    empty = driver.launcher("empty", 1)
    launches = [driver.time_ns(lambda: [empty() for _ in range(12)]) for _ in range(samples)]
    to, source = driver.allocate(size), driver.allocate(size)
    count = ctypes.c_uint32(size // 16)
    data = (ctypes.c_char * size)()
    driver.call("cuMemcpyHtoDAsync_v2", source, data, ctypes.c_size_t(size), driver.stream)
    copy = driver.launcher("copy", (count.value + THREADS - 1) // THREADS, to, source, count)
    copies = [driver.time_ns(copy) for _ in range(samples)]
    return {"launches_ns": statistics.median(launches), "copy_bytes_per_s": 2 * size / statistics.median(copies) * 1e9}
