/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/loop.h"
#include "model/operator/operator_forms.h"

#include <string.h>

const struct wpk_operator_form wpk_operator_forms[WPK_KIND_COUNT] = {
    [WPK_KIND_POINTWISE] = {wpk_infer_pointwise, wpk_print_text},
    [WPK_KIND_SELECT] = {wpk_infer_pointwise, wpk_print_text},
    [WPK_KIND_VARIADIC] = {wpk_infer_pointwise, wpk_print_variadic},
    [WPK_KIND_SAME] = {wpk_infer_same, wpk_print_text},
    [WPK_KIND_CLIP] = {wpk_infer_like, wpk_print_clip},
    [WPK_KIND_CAST] = {wpk_infer_like, wpk_print_text},
    [WPK_KIND_LIKE] = {wpk_infer_like, wpk_print_text},
    [WPK_KIND_LOOP_ENTER] = {wpk_infer_loop, wpk_print_boundary},
    [WPK_KIND_LOOP_READ] = {wpk_infer_loop, wpk_print_boundary},
    [WPK_KIND_LOOP_STORE] = {wpk_infer_loop, wpk_print_boundary},
    [WPK_KIND_LOOP_RESULT] = {wpk_infer_loop, wpk_print_boundary},
    [WPK_KIND_REDUCE] = {wpk_infer_reduce, wpk_print_text},
    [WPK_KIND_CONV] = {wpk_infer_conv, wpk_print_conv},
    [WPK_KIND_MAX_POOL] = {wpk_infer_pool, wpk_print_pool},
    [WPK_KIND_AVERAGE_POOL] = {wpk_infer_pool, wpk_print_pool},
    [WPK_KIND_LP_POOL] = {wpk_infer_pool, wpk_print_pool},
    [WPK_KIND_MATMUL] = {wpk_infer_matmul, wpk_print_matmul},
    [WPK_KIND_GEMM] = {wpk_infer_gemm, wpk_print_gemm},
    [WPK_KIND_RESHAPE] = {wpk_infer_reshape, wpk_print_reshape},
    [WPK_KIND_FLATTEN] = {wpk_infer_flatten, wpk_print_reshape},
    [WPK_KIND_SQUEEZE] = {wpk_infer_squeeze, wpk_print_reshape},
    [WPK_KIND_UNSQUEEZE] = {wpk_infer_unsqueeze, wpk_print_reshape},
    [WPK_KIND_TRANSPOSE] = {wpk_infer_transpose, wpk_print_transpose},
    [WPK_KIND_CONCAT] = {wpk_infer_concat, wpk_print_concat},
    [WPK_KIND_EXPAND] = {wpk_infer_expand, wpk_print_text},
    [WPK_KIND_PAD] = {wpk_infer_pad, wpk_print_pad},
    [WPK_KIND_RESIZE] = {wpk_infer_resize, wpk_print_resize},
    [WPK_KIND_CONV_TRANSPOSE] = {wpk_infer_conv_transpose, wpk_print_conv_transpose},
    [WPK_KIND_CONSTANT_OF_SHAPE] = {wpk_infer_constant_of_shape, wpk_print_shapeless},
    [WPK_KIND_SLICE] = {wpk_infer_slice, wpk_print_slice},
    [WPK_KIND_TOP_K] = {wpk_infer_indexed, wpk_print_top_k},
    [WPK_KIND_GATHER] = {wpk_infer_indexed, wpk_print_indexed},
    [WPK_KIND_GATHER_ELEMENTS] = {wpk_infer_indexed, wpk_print_indexed},
    [WPK_KIND_GATHER_ND] = {wpk_infer_indexed, wpk_print_indexed},
    [WPK_KIND_SCATTER_ELEMENTS] = {wpk_infer_indexed, wpk_print_indexed},
    [WPK_KIND_SCATTER_ND] = {wpk_infer_indexed, wpk_print_indexed},
    [WPK_KIND_ONE_HOT] = {wpk_infer_indexed, wpk_print_indexed},
    [WPK_KIND_DEPTH_TO_SPACE] = {wpk_infer_place, wpk_print_place},
    [WPK_KIND_SPACE_TO_DEPTH] = {wpk_infer_place, wpk_print_place},
    [WPK_KIND_TILE] = {wpk_infer_place, wpk_print_place},
    [WPK_KIND_CENTER] = {wpk_infer_place, wpk_print_place},
    [WPK_KIND_ATTENTION] = {wpk_infer_attention, wpk_print_attention},
    [WPK_KIND_EINSUM] = {wpk_infer_einsum, wpk_print_einsum},
    [WPK_KIND_ROTARY] = {wpk_infer_rotary, wpk_print_rotary},
    [WPK_KIND_GROUP] = {wpk_infer_group, wpk_print_group},
    [WPK_KIND_RANGE] = {wpk_infer_range, wpk_print_text},
    [WPK_KIND_NON_ZERO] = {wpk_infer_non_zero, wpk_print_shapeless},
    [WPK_KIND_LOSS] = {wpk_infer_loss, wpk_print_loss},
    [WPK_KIND_SHAPE] = {wpk_infer_shape_of, wpk_print_shapeless},
    [WPK_KIND_EQUATION] = {wpk_infer_equation, wpk_print_equation},
};

#define POINTWISE(name, inputs, attributes, text)                                                  \
    {                                                                                              \
        name, inputs, inputs, WPK_KIND_POINTWISE, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT, attributes,  \
            text, 0, 0                                                                             \
    }
#define PREDICATE(name, inputs, text)                                                              \
    {                                                                                              \
        name, inputs, inputs, WPK_KIND_POINTWISE, WPK_AXES_NONE, WPK_OUTPUT_BOOL, "", text, 0, 0   \
    }
#define SAME(name, min, max, axes, attributes, text)                                               \
    {                                                                                              \
        name, min, max, WPK_KIND_SAME, axes, WPK_OUTPUT_AS_INPUT, attributes, text, 0, 0           \
    }
#define REDUCE(name, text)                                                                         \
    {                                                                                              \
        name, 1, 2, WPK_KIND_REDUCE, WPK_AXES_LISTED, WPK_OUTPUT_AS_INPUT,                         \
            "axes:I keepdims:i noop_with_empty_axes:i", text, 0, 0                                 \
    }
/* The first of the largest or smallest elements, or the last one. */
#define EXTREME(name, function, compare)                                                           \
    {                                                                                              \
        name, 1, 1, WPK_KIND_REDUCE, WPK_AXES_FIRST, WPK_OUTPUT_I64,                               \
            "axis:i keepdims:i select_last_index:i",                                               \
            "Y[..] = {?select_last_index!=1:min}{?select_last_index=1:max}(@) "                    \
            "select(X[@] " compare " M[-], {r}, {?select_last_index!=1:{#}}"                       \
            "{?select_last_index=1:-1}) where M[-] = " function "(@) X[@]",                        \
            0, 0                                                                                   \
    }
#define GLOBAL(name, text)                                                                         \
    {                                                                                              \
        name, 1, 1, WPK_KIND_REDUCE, WPK_AXES_SPATIAL, WPK_OUTPUT_AS_INPUT, "", text, 0, 0         \
    }
#define OTHER(name, min, max, kind, attributes)                                                    \
    {                                                                                              \
        name, min, max, kind, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT, attributes, NULL, 0, 0           \
    }

#define EXPANDED(name, min, max, outputs, attributes)                                              \
    {                                                                                              \
        name, min, max, WPK_KIND_EXPANDED, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT, attributes, NULL,   \
            0, outputs                                                                             \
    }
#define AUTO_PAD "auto_pad:s=NOTSET|VALID|SAME_UPPER|SAME_LOWER"
#define SCATTER_REDUCTION "reduction:s=none|add|mul|max|min"
#define RECURRENT_DIRECTION "direction:s=forward|reverse|bidirectional"
#define RECURRENT(name, max, outputs, attributes)                                                  \
    {                                                                                              \
        name, 3, max, WPK_KIND_EXPANDED, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT,                       \
            "activation_alpha:F activation_beta:F activations:s clip:f " RECURRENT_DIRECTION       \
            " hidden_size:i "                                                                      \
            "layout:i output_sequence:i " attributes,                                              \
            NULL, 0, outputs                                                                       \
    }

#define VARIADIC(name, text)                                                                       \
    {                                                                                              \
        name, 1, WPK_OPERATOR_INPUTS_MAX, WPK_KIND_VARIADIC, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT,   \
            "", text, 0, 0                                                                         \
    }

/* The angle whose tangent A[..] is, A[..] >= 0 or NaN, by the rational function of Cephes' atan.c:
 * within 2 units in the last place of f64. */
#define ANGLE(result, tangent)                                                                     \
    "Y[..] = " result " where A[..] = " tangent "; "                                               \
    "Z[..] = select(A[..] > 2.414213562373095, -1 / A[..], "                                       \
    "select(A[..] > 0.66, (A[..] - 1) / (A[..] + 1), A[..])); Q[..] = Z[..] * Z[..]; "             \
    "R[..] = select(A[..] > 2.414213562373095, Z[..] + 1.5707963267948966, "                       \
    "select(A[..] > 0.66, Z[..] + 0.7853981633974483, Z[..])) + Z[..] * (Q[..] * ("                \
    "(((-0.8750608600031904 * Q[..] - 16.157537187333652) * Q[..] - 75.00855792314705) * Q[..] - " \
    "122.88666844901361) * Q[..] - 64.85021904942025) / (((((Q[..] + 24.858464901423062) * "       \
    "Q[..] + 165.02700983169885) * Q[..] + 432.88106049129027) * Q[..] + 485.3903996359137) * "    \
    "Q[..] + 194.5506571482614))"

/* A factor of 2^(2^b) for each bit b that `of` has; the last one only of i64. */
#define BITS(times, of, begin, end)                                                                \
    times begin of " % 2 == 1, 2, 1" end times begin of " / 2 % 2 == 1, 4, 1" end times begin of   \
                   " / 4 % 2 == 1, 16, 1" end times begin of                                       \
                   " / 8 % 2 == 1, 256, 1" end times begin of " / 16 % 2 == 1, 65536, 1" end       \
                   "{?i64:" times begin of " / 32 % 2 == 1, 4294967296, 1" end "}"
#define SHIFT(times) BITS(times, "{to}(X1[..])", "select(", ")")

/* The bits that both have; the sign is a bit of its own. */
#define BITWISE(name, text)                                                                        \
    POINTWISE(name, 2, "",                                                                         \
              "Y[..] = " text " where A[..] = (sum(k:{?i64:63}{?i32:31}) P[k] * "                  \
              "({to}(X[..]) / P[k] % 2) * ({to}(X1[..]) / P[k] % 2)) + "                           \
              "select({to}(X[..]) < 0 && {to}(X1[..]) < 0, "                                       \
              "{?i64:-9223372036854775807}{?i32:-2147483647} - 1, 0); "                            \
              "P[k:{?i64:63}{?i32:31}] = {to}(1)" BITS(" * ", "k", "select(", ")"))

#define POOL_ATTRIBUTES AUTO_PAD " ceil_mode:i dilations:I kernel_shape:I pads:I strides:I "

static const struct wpk_operator operators[] = {
    /* one element each */
    POINTWISE("Identity", 1, "", "Y[..] = X[..]"),
    POINTWISE("Relu", 1, "", "Y[..] = relu(X[..])"),
    POINTWISE("LeakyRelu", 1, "alpha:f", "Y[..] = select(X[..] < 0, {alpha=0.01} * X[..], X[..])"),
    POINTWISE("PRelu", 2, "", "Y[..] = select(X[..] < 0, X1[..] * X[..], X[..])"),
    POINTWISE("Elu", 1, "alpha:f",
              "Y[..] = select(X[..] < 0, {alpha=1} * (exp(X[..]) - 1), X[..])"),
    POINTWISE("HardSigmoid", 1, "alpha:f beta:f",
              "Y[..] = max(0, min(1, {alpha=0.2} * X[..] + {beta=0.5}))"),
    POINTWISE("Gelu", 1, "approximate:s=none|tanh",
              "Y[..] = {?approximate!=tanh:gelu(X[..])}{?approximate=tanh:0.5 * X[..] * (1 + "
              "tanh(0.7978845608028654 * (X[..] + 0.044715 * X[..] * X[..] * X[..])))}"),
    POINTWISE("Selu", 1, "alpha:f gamma:f",
              "Y[..] = {gamma=1.05070102214813232} * select(X[..] < 0, "
              "{alpha=1.67326319217681885} * (exp(X[..]) - 1), X[..])"),
    POINTWISE("Celu", 1, "alpha:f",
              "Y[..] = select(X[..] < 0, {alpha=1} * (exp(X[..] / {alpha=1}) - 1), X[..])"),
    POINTWISE("ThresholdedRelu", 1, "alpha:f", "Y[..] = select(X[..] > {alpha=1}, X[..], 0)"),
    POINTWISE("Shrink", 1, "bias:f lambd:f",
              "Y[..] = {?float:select(X[..] > {lambd=0.5}, X[..] - {bias=0}, "
              "select(-X[..] > {lambd=0.5}, X[..] + {bias=0}, 0))}"
              "{?integer:select(f64(X[..]) > {lambd=0.5}, f64(X[..]) - {bias=0}, "
              "select(-f64(X[..]) > {lambd=0.5}, f64(X[..]) + {bias=0}, 0))}"),
    POINTWISE("Mish", 1, "", "Y[..] = X[..] * tanh(max(X[..], 0) + log(1 + exp(-abs(X[..]))))"),
    POINTWISE("Softsign", 1, "", "Y[..] = X[..] / (1 + abs(X[..]))"),
    POINTWISE("Sign", 1, "", "Y[..] = select(X[..] > 0, 1, select(X[..] < 0, -1, X[..] * 0))"),
    POINTWISE("Swish", 1, "alpha:f", "Y[..] = X[..] * sigmoid({alpha=1} * X[..])"),
    POINTWISE("HardSwish", 1, "", "Y[..] = X[..] * max(0, min(1, X[..] / 6 + 0.5))"),
    POINTWISE("Sigmoid", 1, "", "Y[..] = sigmoid(X[..])"),
    POINTWISE("Softplus", 1, "", "Y[..] = max(X[..], 0) + log(1 + exp(-abs(X[..])))"),
    POINTWISE("Tanh", 1, "", "Y[..] = tanh(X[..])"),
    POINTWISE("Erf", 1, "", "Y[..] = erf(X[..])"),
    POINTWISE("Exp", 1, "", "Y[..] = exp(X[..])"),
    POINTWISE("Log", 1, "", "Y[..] = log(X[..])"),
    POINTWISE("Sqrt", 1, "", "Y[..] = sqrt(X[..])"),
    POINTWISE("Reciprocal", 1, "", "Y[..] = 1 / X[..]"),
    POINTWISE("Abs", 1, "", "Y[..] = abs(X[..])"),
    POINTWISE("Neg", 1, "", "Y[..] = -X[..]"),
    POINTWISE("Floor", 1, "", "Y[..] = floor(X[..])"),
    POINTWISE("Ceil", 1, "", "Y[..] = ceil(X[..])"),
    POINTWISE("Round", 1, "", "Y[..] = round(X[..])"),
    POINTWISE("Sin", 1, "", "Y[..] = sin(X[..])"),
    POINTWISE("Cos", 1, "", "Y[..] = cos(X[..])"),
    POINTWISE("Tan", 1, "", "Y[..] = sin(X[..]) / cos(X[..])"),
    POINTWISE("Asin", 1, "",
              ANGLE("select(X[..] < 0, -R[..], R[..])",
                    "abs(X[..]) / sqrt((1 - abs(X[..])) * (1 + abs(X[..])))")),
    POINTWISE("Acos", 1, "", ANGLE("2 * R[..]", "sqrt((1 - X[..]) / (1 + X[..]))")),
    POINTWISE("Atan", 1, "", ANGLE("select(X[..] < 0, -R[..], R[..])", "abs(X[..])")),
    /* e/2 times exp of the number less one: exp of the number alone may be infinite */
    POINTWISE("Sinh", 1, "", "Y[..] = 1.3591409142295226 * (exp(X[..] - 1) - exp(-X[..] - 1))"),
    POINTWISE("Cosh", 1, "", "Y[..] = 1.3591409142295226 * (exp(X[..] - 1) + exp(-X[..] - 1))"),
    /* beyond 1e9 the root is the number itself, whose square may be infinite */
    POINTWISE(
        "Asinh", 1, "",
        "Y[..] = select(X[..] < 0, -1, 1) * (select(abs(X[..]) > 1e9, 0.69314718055994531, 0) "
        "+ log(abs(X[..]) + select(abs(X[..]) > 1e9, 0, sqrt(X[..] * X[..] + 1))))"),
    POINTWISE("Acosh", 1, "",
              "Y[..] = select(X[..] > 1e9, 0.69314718055994531, 0) "
              "+ log(X[..] + select(X[..] > 1e9, 0, sqrt(X[..] - 1) * sqrt(X[..] + 1)))"),
    POINTWISE("Atanh", 1, "", "Y[..] = 0.5 * log((1 + X[..]) / (1 - X[..]))"),
    POINTWISE("Add", 2, "", "Y[..] = X[..] + X1[..]"),
    POINTWISE("Sub", 2, "", "Y[..] = X[..] - X1[..]"),
    POINTWISE("Mul", 2, "", "Y[..] = X[..] * X1[..]"),
    /* the notation's / and % of integers floor */
    POINTWISE("Div", 2, "",
              "Y[..] = {?float:X[..] / X1[..]}{?integer:select(X[..] % X1[..] != 0 && "
              "(X[..] < 0) != (X1[..] < 0), X[..] / X1[..] + 1, X[..] / X1[..])}"),
    POINTWISE("Mod", 2, "fmod:i",
              "Y[..] = {?float:select(abs(X1[..]) == inf, {?fmod=1:X[..]}{?fmod!=1:"
              "select(X[..] * X1[..] < 0, X1[..], X[..])}, X[..] - X1[..] * "
              "{?fmod=1:select(X[..] / X1[..] < 0, ceil(X[..] / X1[..]), floor(X[..] / X1[..]))}"
              "{?fmod!=1:floor(X[..] / X1[..])})}"
              "{?integer:{?fmod=1:select(X[..] % X1[..] != 0 && (X[..] < 0) != (X1[..] < 0), "
              "X[..] % X1[..] - X1[..], X[..] % X1[..])}{?fmod!=1:X[..] % X1[..]}}"),
    POINTWISE("Pow", 2, "",
              "Y[..] = {?float:pow(X[..], {to}(X1[..]))}"
              "{?integer:pow(f64(X[..]), f64(X1[..]))}"),
    POINTWISE("BitShift", 2, "direction:s=LEFT|RIGHT",
              "Y[..] = select({to}(X1[..]) < 0 || {to}(X1[..]) >= {?i64:64}{?i32:32}, "
              "{?direction=LEFT:0}{?direction!=LEFT:select(X[..] < 0, -1, X[..] * 0)}, "
              "X[..]{?direction=LEFT:" SHIFT(" * ") "}{?direction!=LEFT:" SHIFT(" / ") "})"),
    BITWISE("BitwiseAnd", "A[..]"),
    BITWISE("BitwiseOr", "X[..] + X1[..] - A[..]"),
    BITWISE("BitwiseXor", "X[..] + X1[..] - 2 * A[..]"),
    POINTWISE("BitwiseNot", 1, "", "Y[..] = -X[..] - 1"),
    POINTWISE("SwiGLU", 2, "alpha:f", "Y[..] = X[..] * sigmoid({alpha=1} * X[..]) * X1[..]"),
    VARIADIC("Sum", "+"),
    VARIADIC("Mean", "mean"),
    VARIADIC("Min", "min"),
    VARIADIC("Max", "max"),
    {"Where", 3, 3, WPK_KIND_SELECT, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT, "",
     "Y[..] = select(X[..], X1[..], X2[..])", 0, 0},
    {"Expand", 2, 2, WPK_KIND_EXPAND, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT, "", "Y[..] = X[..]", 0,
     0},
    PREDICATE("Equal", 2, "Y[..] = X[..] == X1[..]"),
    PREDICATE("Less", 2, "Y[..] = X[..] < X1[..]"),
    PREDICATE("LessOrEqual", 2, "Y[..] = X[..] <= X1[..]"),
    PREDICATE("Greater", 2, "Y[..] = X[..] > X1[..]"),
    PREDICATE("GreaterOrEqual", 2, "Y[..] = X[..] >= X1[..]"),
    PREDICATE("And", 2, "Y[..] = X[..] && X1[..]"),
    PREDICATE("Or", 2, "Y[..] = X[..] || X1[..]"),
    PREDICATE("Xor", 2, "Y[..] = X[..] != X1[..]"),
    PREDICATE("Not", 1, "Y[..] = !X[..]"),
    PREDICATE("IsNaN", 1, "Y[..] = isnan(X[..])"),
    {"IsInf", 1, 1, WPK_KIND_POINTWISE, WPK_AXES_NONE, WPK_OUTPUT_BOOL,
     "detect_negative:i detect_positive:i",
     "Y[..] = {?detect_negative!=0:{?detect_positive!=0:isinf(X[..])}"
     "{?detect_positive=0:X[..] == -inf}}{?detect_negative=0:{?detect_positive!=0:X[..] == inf}"
     "{?detect_positive=0:X[..] < -inf}}",
     0, 0},
    {"Dropout", 1, 3, WPK_KIND_SAME, WPK_AXES_NONE, WPK_OUTPUT_MASK, "ratio:f seed:i",
     "Y[..] = {?part=0:X[..]}{?part=1:0 == 0}", 2, 0},
    {"EyeLike", 1, 1, WPK_KIND_LIKE, WPK_AXES_NONE, WPK_OUTPUT_DTYPE, "dtype:i k:i",
     "Y[..] = select({column} - {row} == {k=0}, {to}(1), {to}(0))", 0, 0},
    {"Trilu", 1, 2, WPK_KIND_LIKE, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT, "upper:i",
     "Y[..] = select({column} - {row} {?upper=0:<=}{?upper!=0:>=} {X1=0}, X[..], 0)", 0, 0},
    OTHER("Clip", 1, 3, WPK_KIND_CLIP, "min:f max:f"),

    /* rows, and means over axes */
    {"BatchNormalization", 5, 5, WPK_KIND_SAME, WPK_AXES_MOMENTS, WPK_OUTPUT_AS_INPUT,
     "epsilon:f momentum:f spatial:i training_mode:i",
     "Y[..] = {?training_mode!=1:(X[..] - X3[-]) / sqrt(X4[-] + {epsilon=1e-5}) * X1[-] + X2[-]}"
     "{?training_mode=1:{?part=0:(X[..] - M[-]) / sqrt(V[-] + {epsilon=1e-5}) * X1[-] + X2[-]}"
     "{?part=1:X3[-] * {momentum=0.9} + M[-] - M[-] * {momentum=0.9}}"
     "{?part=2:X4[-] * {momentum=0.9} + V[-] - V[-] * {momentum=0.9}} where "
     "M[-] = (sum(@) X[@]) / {#}{?part!=1:; "
     "V[-] = (sum(@) (X[@] - M[-]) * (X[@] - M[-])) / {#}}}",
     3, 5},
    SAME("InstanceNormalization", 3, 3, WPK_AXES_SPATIAL, "epsilon:f",
         "Y[..] = (X[..] - M[-]) / sqrt(V[-] + {epsilon=1e-5}) * X1[d1] + X2[d1] where "
         "M[-] = (sum(@) X[@]) / {#}; V[-] = (sum(@) (X[@] - M[-]) * (X[@] - M[-])) / {#}"),
    {"LayerNormalization", 2, 3, WPK_KIND_SAME, WPK_AXES_FROM, WPK_OUTPUT_AS_INPUT,
     "axis:i epsilon:f stash_type:i",
     "Y[..] = {?part=0:(X[..] - M[-]) / sqrt(V[-] + {epsilon=1e-5}) * X1[..]{?2: + X2[..]}}"
     "{?part=1:M[-]}{?part=2:1 / sqrt(V[-] + {epsilon=1e-5})} where "
     "M[-] = (sum(@) X[@]) / {#}{?part!=1:; "
     "V[-] = (sum(@) (X[@] - M[-]) * (X[@] - M[-])) / {#}}",
     3, 0},
    SAME("RMSNormalization", 2, 2, WPK_AXES_FROM, "axis:i epsilon:f stash_type:i",
         "Y[..] = X[..] / sqrt(V[-] + {epsilon=1e-5}) * X1[..] where "
         "V[-] = (sum(@) X[@] * X[@]) / {#}"),
    SAME("MeanVarianceNormalization", 1, 1, WPK_AXES_MOMENTS, "axes:I",
         "Y[..] = (X[..] - M[-]) / (sqrt(V[-]) + 1e-9) where M[-] = (sum(@) X[@]) / {#}; "
         "V[-] = (sum(@) (X[@] - M[-]) * (X[@] - M[-])) / {#}"),
    SAME("LpNormalization", 1, 1, WPK_AXES_LAST, "axis:i p:i",
         "Y[..] = select(S[-] == 0, 0, X[..] / S[-]) where "
         "S[-] = {?p=1:sum(@) abs(X[@])}{?p!=1:sqrt(sum(@) X[@] * X[@])}"),
    SAME("Hardmax", 1, 1, WPK_AXES_SOFTMAX, "axis:i",
         "Y[..] = select(A[-] == {d}, {to}(1), {to}(0)) where M[-] = max(@) X[@]; "
         "A[-] = min(@) select(X[@] >= M[-], {r}, {#})"),
    {"CumSum", 2, 2, WPK_KIND_LIKE, WPK_AXES_INPUT, WPK_OUTPUT_AS_INPUT, "exclusive:i reverse:i",
     "Y[..] = sum(@) select({r} {?reverse=1:>}{?reverse!=1:<}{?exclusive!=1:=} {d}, X[@], 0)", 0,
     0},
    {"CumProd", 2, 2, WPK_KIND_LIKE, WPK_AXES_INPUT, WPK_OUTPUT_AS_INPUT, "exclusive:i reverse:i",
     "Y[..] = prod(@) select({r} {?reverse=1:>}{?reverse!=1:<}{?exclusive!=1:=} {d}, X[@], 1)", 0,
     0},
    SAME("Softmax", 1, 1, WPK_AXES_SOFTMAX, "axis:i",
         "Y[..] = E[..] / S[-] where M[-] = max(@) X[@]; E[..] = exp(X[..] - M[-]); "
         "S[-] = sum(@) E[@]"),
    SAME("LogSoftmax", 1, 1, WPK_AXES_SOFTMAX, "axis:i",
         "Y[..] = X[..] - M[-] - L[-] where M[-] = max(@) X[@]; L[-] = log(S[-]); "
         "S[-] = sum(@) exp(X[@] - M[-])"),
    /* as ONNX Runtime: a mean of integers neither wraps nor floors */
    REDUCE("ReduceMean", "Y[..] = {?float:(sum(@) X[@]) / {#}}{?integer:select(S[-] < 0, "
                         "-(-S[-] / {#}), S[-] / {#}) where S[-] = sum.i64(@) X[@]}"),
    REDUCE("ReduceSum", "Y[..] = sum(@) X[@]"),
    REDUCE("ReduceMax", "Y[..] = max(@) X[@]"),
    REDUCE("ReduceMin", "Y[..] = min(@) X[@]"),
    REDUCE("ReduceProd", "Y[..] = prod(@) X[@]"),
    REDUCE("ReduceL2", "Y[..] = {?float:sqrt(sum(@) X[@] * X[@])}"
                       "{?integer:sqrt(sum(@) f64(X[@]) * f64(X[@]))}"),
    REDUCE("ReduceL1", "Y[..] = sum(@) abs(X[@])"),
    REDUCE("ReduceLogSum", "Y[..] = {?float:log(sum(@) X[@])}{?integer:log(sum(@) f64(X[@]))}"),
    REDUCE("ReduceLogSumExp",
           "Y[..] = N[-] + log(S[-]) where {?float:M[-] = max(@) X[@]; "
           "N[-] = select(isinf(M[-]), 0, M[-]); S[-] = sum(@) exp(X[@] - N[-])}"
           "{?integer:N[-] = max(@) f64(X[@]); S[-] = sum(@) exp(f64(X[@]) - N[-])}"),
    EXTREME("ArgMax", "max", ">="),
    EXTREME("ArgMin", "min", "<="),
    REDUCE("ReduceSumSquare", "Y[..] = sum(@) X[@] * X[@]"),
    GLOBAL("GlobalAveragePool", "Y[..] = (sum(@) X[@]) / {#}"),
    {"GlobalLpPool", 1, 1, WPK_KIND_REDUCE, WPK_AXES_SPATIAL, WPK_OUTPUT_AS_INPUT, "p:i",
     "Y[..] = {?p=1:sum(@) abs(X[@])}"
     "{?p!=1:pow(sum(@) pow(abs(X[@]), {p=2}), {to}(1) / {p=2})}",
     0, 0},
    GLOBAL("GlobalMaxPool", "Y[..] = max(@) X[@]"),

    /* attributes decide on the structure */
    OTHER("Conv", 2, 3, WPK_KIND_CONV,
          AUTO_PAD " dilations:I group:i kernel_shape:I pads:I strides:I"),
    {"MaxPool", 1, 1, WPK_KIND_MAX_POOL, WPK_AXES_NONE, WPK_OUTPUT_WHERE,
     POOL_ATTRIBUTES "storage_order:i", NULL, 2, 0},
    OTHER("AveragePool", 1, 1, WPK_KIND_AVERAGE_POOL, POOL_ATTRIBUTES "count_include_pad:i"),
    OTHER("MatMul", 2, 2, WPK_KIND_MATMUL, ""),
    OTHER("Gemm", 2, 3, WPK_KIND_GEMM, "alpha:f beta:f transA:i transB:i"),
    OTHER("Reshape", 2, 2, WPK_KIND_RESHAPE, "allowzero:i"),
    OTHER("Flatten", 1, 1, WPK_KIND_FLATTEN, "axis:i"),
    OTHER("Squeeze", 1, 2, WPK_KIND_SQUEEZE, "axes:I"),
    OTHER("Unsqueeze", 1, 2, WPK_KIND_UNSQUEEZE, "axes:I"),
    OTHER("Transpose", 1, 1, WPK_KIND_TRANSPOSE, "perm:I"),
    OTHER("ConvTranspose", 2, 3, WPK_KIND_CONV_TRANSPOSE,
          AUTO_PAD " dilations:I group:i kernel_shape:I output_padding:I "
                   "output_shape:I pads:I strides:I"),
    OTHER("Pad", 1, 4, WPK_KIND_PAD, "mode:s=constant|edge|reflect|wrap pads:I value:f"),
    OTHER("Resize", 1, 4, WPK_KIND_RESIZE,
          "axes:I coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i "
          "extrapolation_value:f mode:s nearest_mode:s antialias:i "
          "keep_aspect_ratio_policy:s=stretch|not_larger|not_smaller"),
    OTHER("ConstantOfShape", 1, 1, WPK_KIND_CONSTANT_OF_SHAPE, "value:t"),
    OTHER("Slice", 1, 5, WPK_KIND_SLICE, "axes:I ends:I starts:I"),
    {"Cast", 1, 1, WPK_KIND_CAST, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT, "to:i saturate:i",
     "Y[..] = X[..]", 0, 0},
    {"Shape", 1, 1, WPK_KIND_SHAPE, WPK_AXES_NONE, WPK_OUTPUT_I64, "end:i start:i", NULL, 0, 0},
    {"CastLike", 2, 2, WPK_KIND_LIKE, WPK_AXES_NONE, WPK_OUTPUT_AS_SECOND, "saturate:i",
     "Y[..] = X[..]", 0, 0},
    {"NonZero", 1, 1, WPK_KIND_NON_ZERO, WPK_AXES_NONE, WPK_OUTPUT_I64, "", NULL, 0, 0},
    {"Size", 1, 1, WPK_KIND_SHAPE, WPK_AXES_NONE, WPK_OUTPUT_I64, "", NULL, 0, 0},
    OTHER("Upsample", 1, 2, WPK_KIND_RESIZE, "mode:s"),
    OTHER("DepthToSpace", 1, 1, WPK_KIND_DEPTH_TO_SPACE, "blocksize:i mode:s=DCR|CRD"),
    OTHER("SpaceToDepth", 1, 1, WPK_KIND_SPACE_TO_DEPTH, "blocksize:i mode:s"),
    OTHER("Tile", 2, 2, WPK_KIND_TILE, ""),
    OTHER("CenterCropPad", 2, 2, WPK_KIND_CENTER, "axes:I"),
    OTHER("LpPool", 1, 1, WPK_KIND_LP_POOL, POOL_ATTRIBUTES "p:i"),
    {"Attention", 3, 7, WPK_KIND_ATTENTION, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT,
     "is_causal:i kv_num_heads:i left_window_size:i q_num_heads:i qk_matmul_output_mode:i "
     "right_window_size:i scale:f softcap:f softmax_precision:i",
     NULL, 4, 0},
    OTHER("Einsum", 1, WPK_OPERATOR_INPUTS_MAX, WPK_KIND_EINSUM, "equation:s"),
    OTHER("GroupNormalization", 3, 3, WPK_KIND_GROUP, "epsilon:f num_groups:i stash_type:i"),
    OTHER("LRN", 1, 1, WPK_KIND_GROUP, "alpha:f beta:f bias:f size:i"),
    {"Range", 3, 3, WPK_KIND_RANGE, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT, "stash_type:i",
     "Y[d0] = X[] + {to}(d0) * X2[]", 0, 0},
    OTHER("RotaryEmbedding", 3, 4, WPK_KIND_ROTARY,
          "interleaved:i num_heads:i rotary_embedding_dim:i"),
    {"Split", 1, 2, WPK_KIND_SLICE, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT,
     "axis:i num_outputs:i split:I", NULL, WPK_GRAPH_NODES_MAX, 0},
    OTHER("Gather", 2, 2, WPK_KIND_GATHER, "axis:i"),
    {"TopK", 1, 2, WPK_KIND_TOP_K, WPK_AXES_NONE, WPK_OUTPUT_WHERE, "axis:i k:i largest:i sorted:i",
     NULL, 2, 0},
    OTHER("GatherElements", 2, 2, WPK_KIND_GATHER_ELEMENTS, "axis:i"),
    OTHER("GatherND", 2, 2, WPK_KIND_GATHER_ND, "batch_dims:i"),
    OTHER("Scatter", 3, 3, WPK_KIND_SCATTER_ELEMENTS, "axis:i"),
    OTHER("ScatterElements", 3, 3, WPK_KIND_SCATTER_ELEMENTS, "axis:i " SCATTER_REDUCTION),
    OTHER("ScatterND", 3, 3, WPK_KIND_SCATTER_ND, SCATTER_REDUCTION),
    {"OneHot", 3, 3, WPK_KIND_ONE_HOT, WPK_AXES_NONE, WPK_OUTPUT_AS_THIRD, "axis:i", NULL, 0, 0},
    OTHER("NegativeLogLikelihoodLoss", 2, 3, WPK_KIND_LOSS,
          "ignore_index:i reduction:s=none|mean|sum"),
    {"SoftmaxCrossEntropyLoss", 2, 3, WPK_KIND_LOSS, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT,
     "ignore_index:i reduction:s=none|mean|sum", NULL, 2, 0},
    OTHER("Concat", 1, WPK_OPERATOR_INPUTS_MAX, WPK_KIND_CONCAT, "axis:i"),

    /* expand.c */
    EXPANDED("AffineGrid", 2, 2, 1, "align_corners:i"),
    EXPANDED("BlackmanWindow", 1, 1, 1, "output_datatype:i periodic:i"),
    EXPANDED("CausalConvWithState", 2, 4, 2, "activation:s=none|silu|swish"),
    EXPANDED("Col2Im", 3, 3, 1, "dilations:I pads:I strides:I"),
    EXPANDED("Compress", 2, 2, 1, "axis:i"),
    EXPANDED("ConvInteger", 2, 4, 1,
             AUTO_PAD " dilations:I group:i kernel_shape:I pads:I strides:I"),
    EXPANDED("DequantizeLinear", 2, 3, 1, "axis:i block_size:i output_dtype:i"),
    EXPANDED("DynamicQuantizeLinear", 1, 1, 3, ""),
    EXPANDED("MatMulInteger", 2, 4, 1, ""),
    EXPANDED("QLinearConv", 8, 9, 1,
             AUTO_PAD " dilations:I group:i kernel_shape:I pads:I strides:I"),
    EXPANDED("QLinearMatMul", 8, 8, 1, ""),
    EXPANDED("QuantizeLinear", 2, 3, 1,
             "axis:i block_size:i output_dtype:i precision:i saturate:i"),
    EXPANDED("DeformConv", 3, 5, 1,
             "dilations:I group:i kernel_shape:I offset_group:i pads:I strides:I"),
    EXPANDED("Det", 1, 1, 1, ""),
    EXPANDED("DFT", 1, 3, 1, "axis:i inverse:i onesided:i"),
    EXPANDED("GridSample", 2, 2, 1,
             "align_corners:i mode:s=nearest|linear|bilinear|cubic|bicubic "
             "padding_mode:s=zeros|border|reflection"),
    RECURRENT("GRU", 6, 2, "linear_before_reset:i"),
    EXPANDED("HammingWindow", 1, 1, 1, "output_datatype:i periodic:i"),
    EXPANDED("HannWindow", 1, 1, 1, "output_datatype:i periodic:i"),
    EXPANDED("LinearAttention", 3, 6, 2,
             "chunk_size:i kv_num_heads:i q_num_heads:i scale:f "
             "update_rule:s=linear|gated|delta|gated_delta"),
    RECURRENT("LSTM", 8, 3, "input_forget:i"),
    EXPANDED("MaxUnpool", 2, 3, 1, "kernel_shape:I pads:I strides:I"),
    EXPANDED("ReverseSequence", 2, 2, 1, "batch_axis:i time_axis:i"),
    RECURRENT("RNN", 6, 2, ""),
    EXPANDED("RoiAlign", 3, 3, 1,
             "coordinate_transformation_mode:s=half_pixel|output_half_pixel mode:s=avg|max "
             "output_height:i output_width:i "
             "sampling_ratio:i spatial_scale:f"),
    EXPANDED("STFT", 2, 4, 1, "onesided:i"),
    EXPANDED("TensorScatter", 2, 3, 1, "axis:i mode:s=linear|circular"),

    /* unroll.c */
    EXPANDED("Loop", 0, WPK_OPERATOR_INPUTS_MAX, WPK_OPERATOR_INPUTS_MAX, "body:-"),
    EXPANDED("Scan", 0, WPK_OPERATOR_INPUTS_MAX, WPK_OPERATOR_INPUTS_MAX,
             "body:- num_scan_inputs:i scan_input_axes:I scan_input_directions:I "
             "scan_output_axes:I scan_output_directions:I"),

    /* gone once a file is read */
    EXPANDED("Constant", 0, 0, 1, ""),
    EXPANDED("If", 1, 1, WPK_GRAPH_NODES_MAX, ""),
};

/* expand_product.c */
static const struct wpk_operator sums[] = {
    {"MatMul", 2, 2, WPK_KIND_MATMUL, WPK_AXES_NONE, WPK_OUTPUT_SUM, "", NULL, 0, 0},
    {"Conv", 2, 2, WPK_KIND_CONV, WPK_AXES_NONE, WPK_OUTPUT_SUM,
     AUTO_PAD " dilations:I group:i kernel_shape:I outside:i pads:I strides:I", NULL, 0, 0},
    {"Shift", 1, 1, WPK_KIND_POINTWISE, WPK_AXES_NONE, WPK_OUTPUT_DTYPE, "by:i dtype:i",
     "Y[..] = {to}(i32(X[..]) + {by=0})", 0, 0},
};

static const struct wpk_operator microsoft[] = {
    POINTWISE("BiasGelu", 2, "", "Y[..] = gelu(X[..] + X1[..])"),
    EXPANDED("EmbedLayerNormalization", 7, 9, 3, "epsilon:f mask_index_type:i"),
    {"FastGelu", 1, 2, WPK_KIND_POINTWISE, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT, "",
     "Y[..] = 0.5 * A[..] * (1 + tanh(0.7978845608028654 * (A[..] + 0.044715 * A[..] * A[..] * "
     "A[..]))) where A[..] = X[..]{?1: + X1[..]}",
     0, 0},
    EXPANDED("FusedConv", 2, 4, 1,
             "activation:s activation_params:F " AUTO_PAD " dilations:I group:i kernel_shape:I "
             "pads:I strides:I"),
    EXPANDED("FusedGemm", 2, 3, 1,
             "activation:s activation_alpha:f activation_beta:f activation_gamma:f alpha:f beta:f "
             "transA:i transB:i"),
    EXPANDED("FusedMatMul", 2, 2, 1, "alpha:f transA:i transB:i transBatchA:i transBatchB:i"),
    POINTWISE("Gelu", 1, "", "Y[..] = gelu(X[..])"),
    POINTWISE("QuickGelu", 1, "alpha:f", "Y[..] = X[..] * sigmoid({alpha=1.702} * X[..])"),
    EXPANDED("SkipLayerNormalization", 3, 5, 4, "epsilon:f"),
    EXPANDED("SkipSimplifiedLayerNormalization", 3, 4, 4, "epsilon:f"),
    EXPANDED("DequantizeLinear", 2, 3, 1, "axis:i block_size:i"),
    {"DynamicQuantizeLSTM", 3, 12, WPK_KIND_EXPANDED, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT,
     "activation_alpha:F activation_beta:F activations:s clip:f " RECURRENT_DIRECTION
     " hidden_size:i "
     "input_forget:i",
     NULL, 0, 3},
    EXPANDED("DynamicQuantizeMatMul", 3, 5, 1, ""),
    EXPANDED("MatMulIntegerToFloat", 4, 7, 1, ""),
    EXPANDED("MatMulNBits", 3, 6, 1, "K:i N:i accuracy_level:i bits:i block_size:i"),
    EXPANDED("QuantizeLinear", 2, 3, 1, "axis:i block_size:i saturate:i"),
};

static const struct wpk_operator preview[] = {
    EXPANDED("FlexAttention", 3, 3, 1, "scale:f softmax_precision:i"),
};

#define TREES                                                                                      \
    "base_values:F base_values_as_tensor:t nodes_falsenodeids:I nodes_featureids:I "               \
    "nodes_hitrates:F nodes_hitrates_as_tensor:t nodes_missing_value_tracks_true:I nodes_modes:s " \
    "nodes_nodeids:I nodes_treeids:I nodes_truenodeids:I nodes_values:F "                          \
    "nodes_values_as_tensor:t post_transform:s "

static const struct wpk_operator learned[] = {
    EXPANDED("ArrayFeatureExtractor", 2, 2, 1, ""),
    {"Binarizer", 1, 1, WPK_KIND_POINTWISE, WPK_AXES_NONE, WPK_OUTPUT_AS_INPUT, "threshold:f",
     "Y[..] = select(X[..] > {threshold=0}, {to}(1), {to}(0))", 0, 0},
    EXPANDED("LinearClassifier", 1, 1, 2,
             "classlabels_ints:I classlabels_strings:s coefficients:F intercepts:F multi_class:i "
             "post_transform:s"),
    EXPANDED("LinearRegressor", 1, 1, 1, "coefficients:F intercepts:F post_transform:s targets:i"),
    SAME("Normalizer", 1, 1, WPK_AXES_LAST, "norm:s=MAX|L1|L2",
         "Y[..] = select(S[-] == 0, X[..], X[..] / S[-]) where S[-] = "
         "{?norm=MAX:max(@) X[@]}{?norm=L1:sum(@) abs(X[@])}{?norm=L2:sqrt(sum(@) X[@] * X[@])}"),
    EXPANDED("Scaler", 1, 1, 1, "offset:F scale:F"),
    EXPANDED("TreeEnsemble", 1, 1, 1,
             "aggregate_function:i leaf_targetids:I leaf_weights:t membership_values:t n_targets:i "
             "nodes_falseleafs:I nodes_falsenodeids:I nodes_featureids:I nodes_hitrates:t "
             "nodes_missing_value_tracks_true:I nodes_modes:t nodes_splits:t nodes_trueleafs:I "
             "nodes_truenodeids:I post_transform:i tree_roots:I"),
    EXPANDED("TreeEnsembleClassifier", 1, 1, 2,
             TREES "class_ids:I class_nodeids:I class_treeids:I class_weights:F "
                   "class_weights_as_tensor:t classlabels_int64s:I classlabels_strings:s"),
    EXPANDED("TreeEnsembleRegressor", 1, 1, 1,
             TREES
             "aggregate_function:s=SUM|AVERAGE|MIN|MAX n_targets:i target_ids:I target_nodeids:I "
             "target_treeids:I target_weights:F target_weights_as_tensor:t"),
    /* the values; the keys are the file's */
    POINTWISE("ZipMap", 1, "classlabels_int64s:I classlabels_strings:s", "Y[..] = X[..]"),
};

static const struct wpk_operator equation = {"Equation",
                                             1,
                                             WPK_OPERATOR_INPUTS_MAX,
                                             WPK_KIND_EQUATION,
                                             WPK_AXES_NONE,
                                             WPK_OUTPUT_DTYPE,
                                             "axis:i dtype:i shape:I text:s",
                                             NULL,
                                             0,
                                             0};

static const struct wpk_operator loop_operators[] = {
    OTHER("Enter", 1, 1, WPK_KIND_LOOP_ENTER, ""),
    OTHER("Read", 1, 1, WPK_KIND_LOOP_READ, "offset:i shape:I step:i"),
    OTHER("Store", 2, 2, WPK_KIND_LOOP_STORE, "reverse:i"),
    OTHER("Result", 1, 2, WPK_KIND_LOOP_RESULT, ""),
};

static const struct wpk_operator *find_in(const struct wpk_operator *list, size_t count,
                                          const char *name)
{
    int found = WPK_FIND(struct wpk_operator, name, list, count, name);
    return found >= 0 ? &list[found] : NULL;
}

/* The tables of what files can name. */
static const struct {
    const char *domain;
    const struct wpk_operator *list;
    size_t count;
} tables[] = {
    {"", operators, sizeof(operators) / sizeof(operators[0])},
    {"ai.onnx.ml", learned, sizeof(learned) / sizeof(learned[0])},
    {"com.microsoft", microsoft, sizeof(microsoft) / sizeof(microsoft[0])},
    {"ai.onnx.preview", preview, sizeof(preview) / sizeof(preview[0])},
};

const struct wpk_operator *wpk_operator_find(const char *name, const char *domain)
{
    if (strcmp(domain, WPK_EQUATION_DOMAIN) == 0) {
        return &equation;
    }
    if (strcmp(domain, WPK_LOOP_DOMAIN) == 0) {
        return find_in(loop_operators, sizeof(loop_operators) / sizeof(loop_operators[0]), name);
    }
    if (strcmp(domain, WPK_SUM_DOMAIN) == 0) {
        return find_in(sums, sizeof(sums) / sizeof(sums[0]), name);
    }
    domain = strcmp(domain, "ai.onnx") == 0 ? "" : domain;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        if (strcmp(tables[i].domain, domain) == 0) {
            return find_in(tables[i].list, tables[i].count, name);
        }
    }
    return NULL;
}

const struct wpk_operator *wpk_operator_at(int index, const char **domain)
{
    size_t left = (size_t)index;

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        if (left < tables[i].count) {
            *domain = tables[i].domain;
            return &tables[i].list[left];
        }
        left -= tables[i].count;
    }
    return NULL;
}
