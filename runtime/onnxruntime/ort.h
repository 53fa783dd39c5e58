/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of ONNX Runtime's C interface that the provider uses.
 *
 * ONNX Runtime ships no headers with its packages. The interface is tables of functions that grow
 * only at their ends, which is the promise of binary compatibility: a function is known by the
 * ordinal in the table. All ordinals here exist since version 1.23, the first with providers in
 * shared libraries of others; wpk_ort_open() asks for that version's tables, and newer versions go
 * on serving them.
 *
 *   source  ordinals: order of the members of OrtApi, OrtEpApi and OrtModelEditorApi in
 *           onnxruntime_c_api.h and onnxruntime_ep_c_api.h of ONNX Runtime 1.23 to 1.32, confirmed
 *           by calling each one
 *
 * Functions are spelled as in ONNX Runtime. They return NULL, or a status that the caller releases.
 * Those that release accept NULL. A size or count is the one of the array before it. */
#ifndef WPK_RUNTIME_ONNXRUNTIME_ORT_H
#define WPK_RUNTIME_ONNXRUNTIME_ORT_H

#include "common/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WPK_ORT_VERSION 23
#define WPK_ORT_RANK_MAX 64

/* The code of this library's own errors. Code 11, "EP_FAIL", is never returned: ONNX Runtime's
 * Python package would move the session to the CPU for good. */
enum { ORT_FAIL = 1 };

enum { ORT_LOG_WARNING = 2, ORT_LOG_FATAL = 4 };
enum { ORT_DEVICE_CPU = 0 };
enum { ORT_TYPE_TENSOR = 1 };
enum { ORT_ELEMENT_STRING = 8 };
enum { ORT_ALLOCATOR_DEVICE = 0, ORT_MEMORY_DEFAULT = 0 };

enum ort_attribute_type {
    ORT_ATTRIBUTE_INT = 1,
    ORT_ATTRIBUTE_INTS,
    ORT_ATTRIBUTE_FLOAT,
    ORT_ATTRIBUTE_FLOATS,
    ORT_ATTRIBUTE_STRING,
    ORT_ATTRIBUTE_STRINGS,
    ORT_ATTRIBUTE_TENSOR = 8,
};

struct ort_allocator;
struct ort_attribute;
struct ort_compute_context;
struct ort_env;
struct ort_ep_device;
struct ort_external_info;
struct ort_graph;
struct ort_hardware_device;
struct ort_kernel_context;
struct ort_logger;
struct ort_memory_info;
struct ort_model;
struct ort_node;
struct ort_pairs;
struct ort_run_options;
struct ort_session;
struct ort_session_options;
struct ort_shape_info;
struct ort_status;
struct ort_support_info;
struct ort_type_info;
struct ort_value;
struct ort_value_info;

/* Functions of OrtApi: S(ordinal, name, parameters) returns a status, X(ordinal, name, result,
 * parameters) something else. */
#define ORT_API_LIST(X, S)                                                                         \
    S(0, CreateStatus, (int, const char *))                                                        \
    S(3, CreateEnv, (int, const char *, struct ort_env **))                                        \
    S(9, Run,                                                                                      \
      (struct ort_session *, const struct ort_run_options *, const char *const *,                  \
       const struct ort_value *const *, size_t, const char *const *, size_t, struct ort_value **)) \
    S(10, CreateSessionOptions, (struct ort_session_options **))                                   \
    S(22, SetSessionLogSeverityLevel, (struct ort_session_options *, int))                         \
    S(23, SetSessionGraphOptimizationLevel, (struct ort_session_options *, int))                   \
    S(24, SetIntraOpNumThreads, (struct ort_session_options *, int))                               \
    S(30, SessionGetInputCount, (const struct ort_session *, size_t *))                            \
    S(36, SessionGetInputName,                                                                     \
      (const struct ort_session *, size_t, struct ort_allocator *, char **))                       \
    S(34, SessionGetOutputTypeInfo, (const struct ort_session *, size_t, struct ort_type_info **)) \
    S(48, CreateTensorAsOrtValue,                                                                  \
      (struct ort_allocator *, const int64_t *, size_t, int, struct ort_value **))                 \
    S(49, CreateTensorWithDataAsOrtValue,                                                          \
      (const struct ort_memory_info *, void *, size_t, const int64_t *, size_t, int,               \
       struct ort_value **))                                                                       \
    S(51, GetTensorMutableData, (struct ort_value *, void **))                                     \
    S(55, CastTypeInfoToTensorInfo,                                                                \
      (const struct ort_type_info *, const struct ort_shape_info **))                              \
    S(57, CreateTensorTypeAndShapeInfo, (struct ort_shape_info **))                                \
    S(58, SetTensorElementType, (struct ort_shape_info *, int))                                    \
    S(59, SetDimensions, (struct ort_shape_info *, const int64_t *, size_t))                       \
    S(60, GetTensorElementType, (const struct ort_shape_info *, int *))                            \
    S(61, GetDimensionsCount, (const struct ort_shape_info *, size_t *))                           \
    S(62, GetDimensions, (const struct ort_shape_info *, int64_t *, size_t))                       \
    S(63, GetSymbolicDimensions, (const struct ort_shape_info *, const char **, size_t))           \
    S(65, GetTensorTypeAndShape, (const struct ort_value *, struct ort_shape_info **))             \
    S(69, CreateCpuMemoryInfo, (int, int, struct ort_memory_info **))                              \
    S(76, AllocatorFree, (struct ort_allocator *, void *))                                         \
    S(78, GetAllocatorWithDefaultOptions, (struct ort_allocator **))                               \
    S(90, KernelContext_GetInput,                                                                  \
      (const struct ort_kernel_context *, size_t, const struct ort_value **))                      \
    S(91, KernelContext_GetOutput,                                                                 \
      (struct ort_kernel_context *, size_t, const int64_t *, size_t, struct ort_value **))         \
    X(92, ReleaseEnv, void, (struct ort_env *))                                                    \
    X(93, ReleaseStatus, void, (struct ort_status *))                                              \
    X(94, ReleaseMemoryInfo, void, (struct ort_memory_info *))                                     \
    X(95, ReleaseSession, void, (struct ort_session *))                                            \
    X(96, ReleaseValue, void, (struct ort_value *))                                                \
    X(98, ReleaseTypeInfo, void, (struct ort_type_info *))                                         \
    X(99, ReleaseTensorTypeAndShapeInfo, void, (struct ort_shape_info *))                          \
    X(100, ReleaseSessionOptions, void, (struct ort_session_options *))                            \
    S(130, AddSessionConfigEntry, (struct ort_session_options *, const char *, const char *))      \
    S(211, CreateOpAttr, (const char *, const void *, int, int, struct ort_attribute **))          \
    X(212, ReleaseOpAttr, void, (struct ort_attribute *))                                          \
    S(272, ReadOpAttr, (const struct ort_attribute *, int, void *, size_t, size_t *))              \
    S(274, KernelContext_ParallelFor,                                                              \
      (const struct ort_kernel_context *, void (*)(void *, size_t), size_t, size_t, void *))       \
    X(285, ReleaseValueInfo, void, (struct ort_value_info *))                                      \
    X(286, ReleaseNode, void, (struct ort_node *))                                                 \
    X(287, ReleaseGraph, void, (struct ort_graph *))                                               \
    X(288, ReleaseModel, void, (struct ort_model *))                                               \
    S(289, GetValueInfoName, (const struct ort_value_info *, const char **))                       \
    S(290, GetValueInfoTypeInfo, (const struct ort_value_info *, const struct ort_type_info **))   \
    X(291, GetModelEditorApi, const ort_entry *, (void))                                           \
    X(298, GetKeyValuePairs, void,                                                                 \
      (const struct ort_pairs *, const char *const **, const char *const **, size_t *))            \
    X(300, ReleaseKeyValuePairs, void, (struct ort_pairs *))                                       \
    X(307, HardwareDevice_Type, int, (const struct ort_hardware_device *))                         \
    X(317, GetEpApi, const ort_entry *, (void))                                                    \
    S(318, GetTensorSizeInBytes, (const struct ort_value *, size_t *))                             \
    S(323, ValueInfo_GetValueProducer,                                                             \
      (const struct ort_value_info *, const struct ort_node **, size_t *))                         \
    S(326, ValueInfo_GetInitializerValue,                                                          \
      (const struct ort_value_info *, const struct ort_value **))                                  \
    S(327, ValueInfo_GetExternalInitializerInfo,                                                   \
      (const struct ort_value_info *, struct ort_external_info **))                                \
    S(331, ValueInfo_IsConstantInitializer, (const struct ort_value_info *, bool *))               \
    S(334, Graph_GetModelPath, (const struct ort_graph *, const char **))                          \
    S(336, Graph_GetNumOperatorSets, (const struct ort_graph *, size_t *))                         \
    S(337, Graph_GetOperatorSets, (const struct ort_graph *, const char **, int64_t *, size_t))    \
    S(342, Graph_GetNumInitializers, (const struct ort_graph *, size_t *))                         \
    S(343, Graph_GetInitializers,                                                                  \
      (const struct ort_graph *, const struct ort_value_info **, size_t))                          \
    S(344, Graph_GetNumNodes, (const struct ort_graph *, size_t *))                                \
    S(345, Graph_GetNodes, (const struct ort_graph *, const struct ort_node **, size_t))           \
    S(346, Graph_GetParentNode, (const struct ort_graph *, const struct ort_node **))              \
    S(348, Node_GetId, (const struct ort_node *, size_t *))                                        \
    S(349, Node_GetName, (const struct ort_node *, const char **))                                 \
    S(350, Node_GetOperatorType, (const struct ort_node *, const char **))                         \
    S(351, Node_GetDomain, (const struct ort_node *, const char **))                               \
    S(353, Node_GetNumInputs, (const struct ort_node *, size_t *))                                 \
    S(354, Node_GetInputs, (const struct ort_node *, const struct ort_value_info **, size_t))      \
    S(355, Node_GetNumOutputs, (const struct ort_node *, size_t *))                                \
    S(356, Node_GetOutputs, (const struct ort_node *, const struct ort_value_info **, size_t))     \
    S(357, Node_GetNumImplicitInputs, (const struct ort_node *, size_t *))                         \
    S(358, Node_GetImplicitInputs,                                                                 \
      (const struct ort_node *, const struct ort_value_info **, size_t))                           \
    S(359, Node_GetNumAttributes, (const struct ort_node *, size_t *))                             \
    S(360, Node_GetAttributes, (const struct ort_node *, const struct ort_attribute **, size_t))   \
    S(362, OpAttr_GetTensorAttributeAsOrtValue,                                                    \
      (const struct ort_attribute *, struct ort_value **))                                         \
    S(363, OpAttr_GetType, (const struct ort_attribute *, int *))                                  \
    S(364, OpAttr_GetName, (const struct ort_attribute *, const char **))                          \
    S(368, Node_GetEpName, (const struct ort_node *, const char **))                               \
    X(369, ReleaseExternalInitializerInfo, void, (struct ort_external_info *))                     \
    X(370, ExternalInitializerInfo_GetFilePath, const char *, (const struct ort_external_info *))  \
    X(371, ExternalInitializerInfo_GetFileOffset, int64_t, (const struct ort_external_info *))     \
    X(372, ExternalInitializerInfo_GetByteSize, size_t, (const struct ort_external_info *))        \
    S(378, GetTensorData, (const struct ort_value *, const void **))                               \
    S(379, GetSessionOptionsConfigEntries,                                                         \
      (const struct ort_session_options *, struct ort_pairs **))

/* The same of OrtEpApi. */
#define ORT_EP_API_LIST(X, S)                                                                      \
    S(0, CreateEpDevice,                                                                           \
      (struct ort_ep_factory *, const struct ort_hardware_device *, const struct ort_pairs *,      \
       const struct ort_pairs *, struct ort_ep_device **))                                         \
    S(2, EpGraphSupportInfo_AddNodesToFuse,                                                        \
      (struct ort_support_info *, const struct ort_node *const *, size_t,                          \
       const struct ort_fusion_options *))

/* The same of OrtModelEditorApi. */
#define ORT_MODEL_EDITOR_API_LIST(X, S)                                                            \
    S(0, CreateTensorTypeInfo, (const struct ort_shape_info *, struct ort_type_info **))           \
    S(5, CreateValueInfo, (const char *, const struct ort_type_info *, struct ort_value_info **))  \
    S(6, CreateNode,                                                                               \
      (const char *, const char *, const char *, const char *const *, size_t, const char *const *, \
       size_t, struct ort_attribute **, size_t, struct ort_node **))                               \
    S(7, CreateGraph, (struct ort_graph **))                                                       \
    S(9, SetGraphOutputs, (struct ort_graph *, struct ort_value_info **, size_t))                  \
    S(10, AddInitializerToGraph, (struct ort_graph *, const char *, struct ort_value *, bool))     \
    S(11, AddNodeToGraph, (struct ort_graph *, struct ort_node *))                                 \
    S(12, CreateModel, (const char *const *, const int *, size_t, struct ort_model **))            \
    S(13, AddGraphToModel, (struct ort_model *, struct ort_graph *))                               \
    S(16, CreateModelEditorSessionFromArray,                                                       \
      (const struct ort_env *, const void *, size_t, const struct ort_session_options *,           \
       struct ort_session **))                                                                     \
    S(18, ApplyModelToModelEditorSession, (struct ort_session *, struct ort_model *))              \
    S(19, FinalizeModelEditorSession,                                                              \
      (struct ort_session *, const struct ort_session_options *, void *))

typedef void (*ort_entry)(void);

/* ONNX Runtime's entry point, as a provider gets it. */
struct ort_api_base {
    const ort_entry *(*GetApi)(uint32_t version); /* NULL: ONNX Runtime is older */
    const char *(*GetVersionString)(void);
};

struct ort_fusion_options {
    uint32_t version;
    bool drop_constant_initializers;
};

/* A claimed group's functions. */
struct ort_compute_info {
    uint32_t version;
    struct ort_status *(*CreateState)(struct ort_compute_info *info,
                                      struct ort_compute_context *context, void **state);
    struct ort_status *(*Compute)(struct ort_compute_info *info, void *state,
                                  struct ort_kernel_context *context);
    void (*ReleaseState)(struct ort_compute_info *info, void *state);
};

/* A session's provider. Slots after ReleaseNodeComputeInfos are optional; their types are left out
 * as long as none is used. */
struct ort_ep {
    uint32_t version;
    const char *(*GetName)(const struct ort_ep *ep);
    struct ort_status *(*GetCapability)(struct ort_ep *ep, const struct ort_graph *graph,
                                        struct ort_support_info *info);
    struct ort_status *(*Compile)(struct ort_ep *ep, const struct ort_graph **graphs,
                                  const struct ort_node **fused, size_t count,
                                  struct ort_compute_info **infos, struct ort_node **contexts);
    void (*ReleaseNodeComputeInfos)(struct ort_ep *ep, struct ort_compute_info **infos,
                                    size_t count);
    ort_entry unused[8];
};

/* A library's maker of providers. ONNX Runtime calls slots without looking whether they are set. */
struct ort_ep_factory {
    uint32_t version;
    const char *(*GetName)(const struct ort_ep_factory *factory);
    const char *(*GetVendor)(const struct ort_ep_factory *factory);
    struct ort_status *(*GetSupportedDevices)(struct ort_ep_factory *factory,
                                              const struct ort_hardware_device *const *devices,
                                              size_t count, struct ort_ep_device **out,
                                              size_t out_max, size_t *out_count);
    struct ort_status *(*CreateEp)(struct ort_ep_factory *factory,
                                   const struct ort_hardware_device *const *devices,
                                   const struct ort_pairs *const *metadata, size_t count,
                                   const struct ort_session_options *options,
                                   const struct ort_logger *logger, struct ort_ep **out);
    void (*ReleaseEp)(struct ort_ep_factory *factory, struct ort_ep *ep);
    uint32_t (*GetVendorId)(const struct ort_ep_factory *factory);
    const char *(*GetVersion)(const struct ort_ep_factory *factory);
    struct ort_status *(*ValidateCompiledModelCompatibilityInfo)(
        struct ort_ep_factory *factory, const struct ort_hardware_device *const *devices,
        size_t count, const char *compatibility, int *out);
    struct ort_status *(*CreateAllocator)(struct ort_ep_factory *factory, const void *info,
                                          const struct ort_pairs *options, void **out);
    void (*ReleaseAllocator)(struct ort_ep_factory *factory, struct ort_allocator *allocator);
    struct ort_status *(*CreateDataTransfer)(struct ort_ep_factory *factory, void **out);
    bool (*IsStreamAware)(const struct ort_ep_factory *factory);
    struct ort_status *(*CreateSyncStreamForDevice)(struct ort_ep_factory *factory,
                                                    const void *device,
                                                    const struct ort_pairs *options, void **out);
};

/* The tables' functions that are used, under their own names. */
struct wpk_ort {
#define ORT_MEMBER(ordinal, name, result, parameters) result(*name) parameters;
#define ORT_STATUS_MEMBER(ordinal, name, parameters) struct ort_status *(*name)parameters;
    ORT_API_LIST(ORT_MEMBER, ORT_STATUS_MEMBER)
    ORT_EP_API_LIST(ORT_MEMBER, ORT_STATUS_MEMBER)
    ORT_MODEL_EDITOR_API_LIST(ORT_MEMBER, ORT_STATUS_MEMBER)
    bool hides_bodies; /* 1.23: a body that is to be claimed has no parent, as a model has none */
#undef ORT_STATUS_MEMBER
#undef ORT_MEMBER
};

/* Fill `ort`; the status says which version is needed where ONNX Runtime is older. */
struct ort_status *wpk_ort_open(const struct ort_api_base *base, struct wpk_ort *ort);

/* A status of code ORT_FAIL with a text in the manner of printf. */
struct ort_status *wpk_ort_fail(const struct wpk_ort *ort, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A tensor's type. */
struct wpk_ort_type {
    int element;          /* ONNX's number; 0: no tensor, or not known */
    size_t rank;          /* 0 also where it is not known */
    int64_t *extents;     /* [rank]; -1: not a number */
    const char **symbols; /* [rank]; "" for a number and where there is none */
};

/* Read the type of a value, or from a type; symbols are ONNX Runtime's, arrays the arena's. */
struct ort_status *wpk_ort_value_type(const struct wpk_ort *ort, struct wpk_arena *arena,
                                      const struct ort_value_info *value, struct wpk_ort_type *out);
struct ort_status *wpk_ort_type(const struct wpk_ort *ort, struct wpk_arena *arena,
                                const struct ort_type_info *info, struct wpk_ort_type *out);

/* A tensor: shape, and where it lies. */
struct wpk_ort_tensor {
    int element; /* ONNX's number */
    size_t rank;
    int64_t extent[WPK_ORT_RANK_MAX];
    void *data;
    size_t size; /* bytes */
};

/* Read a tensor's shape and place.   owns  data is the value's, and may be its caller's to read */
struct ort_status *wpk_ort_tensor(const struct wpk_ort *ort, const struct ort_value *value,
                                  struct wpk_ort_tensor *out);

/* Zeroed memory of `arena` for `count` objects, in the pointer `out`. */
#define WPK_ORT_TAKE(arena, count, out)                                                            \
    do {                                                                                           \
        (out) = wpk_arena_alloc((arena), (count), sizeof(*(out)));                                 \
        if ((out) == NULL) {                                                                       \
            WPK_ORT_TRY(wpk_ort_fail(ort, "out of memory"));                                       \
        }                                                                                          \
    } while (0)

/* Macros for functions with variables `ort` and `status` and a label `done`, to which failures go.
 * WPK_ORT_TRY calls what returns a status. */
#define WPK_ORT_TRY(call)                                                                          \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != NULL) {                                                                      \
            goto done;                                                                             \
        }                                                                                          \
    } while (0)

/* Read a list of ONNX Runtime's, such as a Node's Inputs, into memory of `arena`. */
#define WPK_ORT_LIST(arena, owner, things, object, list, count)                                    \
    do {                                                                                           \
        WPK_ORT_TRY(ort->owner##_GetNum##things((object), &(count)));                              \
        WPK_ORT_TAKE((arena), (count), (list));                                                    \
        WPK_ORT_TRY(ort->owner##_Get##things((object), (list), (count)));                          \
    } while (0)

#endif
