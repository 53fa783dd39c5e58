// SPDX-License-Identifier: Apache-2.0
// common/cuda_calls.h and common/nvml_calls.h beside NVIDIA's cuda.h and nvml.h, whose types C++
// can take apart, and cublaslt_calls.h and cudnn_calls.h beside cublasLt.h and cudnn.h where those
// are installed.
// tests/cuda_header.py compiles it; there is nothing to run.
//
// Two types agree if a caller passes them alike: integers and enums of one size, handles and
// pointers to no type, structs and arrays of bytes.
#include "common/cublaslt_calls.h"
#include "common/cuda_calls.h"
#include "common/cudnn_calls.h"
#include "common/nvml_calls.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define HAVE_CUBLASLT
#endif
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#define HAVE_CUDNN
#endif
#include <cuda.h>
#include <nvml.h>
#include <type_traits>

template <unsigned size> struct Integer {};
template <class To> struct Pointer {};
template <class... Parts> struct Call {};

template <class T, class = void> struct IsComplete : std::false_type {};
template <class T> struct IsComplete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};

// The form in which a caller passes a type. A floating type or void stands for itself.
template <class T> struct Passed {
    template <class U, bool is_integer> struct Of {
        using type = U;
    };
    template <class U> struct Of<U, true> {
        using type = Integer<sizeof(U)>;
    };
    using type = typename Of<T, std::is_integral_v<T> || std::is_enum_v<T>>::type;
};
// A handle points to a struct without members here; any other struct is memory.
template <class T> struct Passed<T *> {
    using Plain = std::remove_cv_t<T>;
    template <class U, bool is_struct> struct Of {
        using type = Pointer<typename Passed<U>::type>;
    };
    template <class U> struct Of<U, true> {
        using type = std::conditional_t<IsComplete<U>::value, Pointer<Integer<1>>, Pointer<void>>;
    };
    using type = typename Of<Plain, std::is_class_v<Plain>>::type;
};
template <class Result, class... Parameters> struct Passed<Result (*)(Parameters...)> {
    using type = Call<typename Passed<Result>::type, typename Passed<Parameters>::type...>;
};

#ifdef HAVE_CUBLASLT
// Handles, although their structs have members.
template <> struct Passed<cublasLtMatmulDescOpaque_t *> {
    using type = Pointer<void>;
};
template <> struct Passed<cublasLtMatrixLayoutOpaque_t *> {
    using type = Pointer<void>;
};
template <> struct Passed<cublasLtMatmulPreferenceOpaque_t *> {
    using type = Pointer<void>;
};
#endif

template <class Ours, class Theirs> constexpr bool agree()
{
    return std::is_same_v<typename Passed<Ours>::type, typename Passed<Theirs>::type>;
}

#define CALL_AGREES(name, parameters)                                                              \
    static_assert(agree<int(*) parameters, decltype(&::name)>(), #name);
WPK_CUDA_CALL_LIST(CALL_AGREES)
WPK_NVML_CALL_LIST(CALL_AGREES)

#ifdef HAVE_CUBLASLT
#define LT_CALL_AGREES(name, result, parameters)                                                   \
    static_assert(agree<result(*) parameters, decltype(&::name)>(), #name);
WPK_CUBLASLT_CALL_LIST(LT_CALL_AGREES)
#define LT_CONSTANT_AGREES(name, number) static_assert(int(::name) == (number), #name);
WPK_CUBLASLT_CONSTANT_LIST(LT_CONSTANT_AGREES)
#define LT_MEMBER_AGREES(ours, theirs)                                                             \
    static_assert(offsetof(wpk_cublaslt_heuristic, ours) ==                                        \
                      offsetof(cublasLtMatmulHeuristicResult_t, theirs),                           \
                  #theirs);
LT_MEMBER_AGREES(algorithm, algo)
LT_MEMBER_AGREES(workspace_bytes, workspaceSize)
LT_MEMBER_AGREES(state, state)
LT_MEMBER_AGREES(waves, wavesCount)
LT_MEMBER_AGREES(reserved, reserved)
static_assert(sizeof(wpk_cublaslt_heuristic) == sizeof(cublasLtMatmulHeuristicResult_t), "");
static_assert(sizeof(wpk_cublaslt_algorithm) == sizeof(cublasLtMatmulAlgo_t), "");
#endif

#ifdef HAVE_CUDNN
#define DNN_CALL_AGREES(name, result, parameters)                                                  \
    static_assert(agree<result(*) parameters, decltype(&::name)>(), #name);
WPK_CUDNN_CALL_LIST(DNN_CALL_AGREES)
#define DNN_CONSTANT_AGREES(name, number) static_assert(int(::name) == (number), #name);
WPK_CUDNN_CONSTANT_LIST(DNN_CONSTANT_AGREES)
#endif

#define CUDA_ERROR_SUCCESS CUDA_SUCCESS
#define RESULT_AGREES(name, number) static_assert(CUDA_ERROR_##name == (number), #name);
WPK_CUDA_RESULT_LIST(RESULT_AGREES)

static_assert(WPK_CUDA_DEVICE_SM_COUNT == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "");
static_assert(WPK_CUDA_DEVICE_CAPABILITY_MAJOR == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, "");
static_assert(WPK_CUDA_DEVICE_CAPABILITY_MINOR == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, "");

static_assert(WPK_NVML_SUCCESS == NVML_SUCCESS, "");
static_assert(WPK_NVML_NOT_SUPPORTED == NVML_ERROR_NOT_SUPPORTED, "");
static_assert(WPK_NVML_SENSOR_GPU == NVML_TEMPERATURE_GPU, "");
#define REASON_AGREES(name, bit) static_assert(nvmlClocksThrottleReason##name == (bit), #name);
WPK_NVML_REASON_LIST(REASON_AGREES)

static_assert(WPK_CUDA_CAPTURE_ACTIVE == CU_STREAM_CAPTURE_STATUS_ACTIVE, "");
static_assert(WPK_CUDA_CAPTURE_MODE_RELAXED == CU_STREAM_CAPTURE_MODE_RELAXED, "");
static_assert(WPK_CUDA_CAPTURE_NONE == CU_STREAM_CAPTURE_STATUS_NONE, "");

// A struct has the same members at the same places.
#define MEMBER_AGREES(ours, theirs)                                                                \
    static_assert(offsetof(wpk_cuda_kernel_node, ours) ==                                          \
                          offsetof(CUDA_KERNEL_NODE_PARAMS_v2, theirs) &&                          \
                      agree<decltype(wpk_cuda_kernel_node::ours),                                  \
                            decltype(CUDA_KERNEL_NODE_PARAMS_v2::theirs)>(),                       \
                  #theirs);
MEMBER_AGREES(function, func)
MEMBER_AGREES(grid_x, gridDimX)
MEMBER_AGREES(grid_y, gridDimY)
MEMBER_AGREES(grid_z, gridDimZ)
MEMBER_AGREES(block_x, blockDimX)
MEMBER_AGREES(block_y, blockDimY)
MEMBER_AGREES(block_z, blockDimZ)
MEMBER_AGREES(shared_bytes, sharedMemBytes)
MEMBER_AGREES(parameters, kernelParams)
MEMBER_AGREES(extra, extra)
MEMBER_AGREES(kernel, kern)
MEMBER_AGREES(context, ctx)
static_assert(sizeof(wpk_cuda_kernel_node) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2), "");

// The sizes of a UUID, which cuDeviceGetUuid_v2 fills, and of a device address.
static_assert(sizeof(CUuuid) == 16, "");
static_assert(sizeof(CUdeviceptr) == sizeof(uint64_t), "");

// Declarations that are wrong do not agree.
static_assert(!agree<int (*)(uint64_t, int), decltype(&::cuMemAlloc_v2)>(), "");
static_assert(!agree<int (*)(uint64_t *), decltype(&::cuMemAlloc_v2)>(), "");
static_assert(!agree<int (*)(int *, size_t), decltype(&::cuMemAlloc_v2)>(), "");
static_assert(!agree<int (*)(void *, void *), decltype(&::cuModuleLoadData)>(), "");
static_assert(!agree<int (*)(double *, void *, void *), decltype(&::cuEventElapsedTime)>(), "");
static_assert(!agree<long (*)(unsigned), decltype(&::cuInit)>(), "");
