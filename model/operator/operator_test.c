/* SPDX-License-Identifier: Apache-2.0 */
/* Results of nodes of constants, or the reason of a refusal. */
#include "model/onnx/read.h"
#include "model/operator/interpret.h"
#include "model/operator/shape.h"
#include "tests/model_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct wpk_model_case samples[] = {
    {"Asin", "-1,-0.5,0,0.9:f32[4]", "", "f32[4] -1.5707963,-0.5235988,0,1.1197695"},
    {"Acos", "-1,-0.5,0,0.9:f64[4]", "",
     "f64[4] 3.141592653589793,2.0943951023931957,1.5707963267948966,0.45102681179626236"},
    {"Atan", "-inf,-1,0.7,3:f32[4]", "", "f32[4] -1.5707963,-0.7853982,0.6107260,1.2490458"},
    {"BitShift", "5,-5,1,-1:i32[4] 1,1,31,40:i32[4]", "direction:s=RIGHT", "i32[4] 2,-3,0,-1"},
    {"BitShift", "5,-5,1,-1:i64[4] 1,62,63,64:i64[4]", "direction:s=LEFT",
     "i64[4] 10,-4611686018427387904,-9223372036854775808,0"},
    {"BitwiseAnd", "12,-1,-2147483648:i32[3] 10,7,-1:i32[3]", "", "i32[3] 8,7,-2147483648"},
    {"BitwiseOr", "12,-8:i64[2] 3:i64[1]", "", "i64[2] 15,-5"},
    {"BitwiseXor", "12,-1:i32[2] 10,7:i32[2]", "", "i32[2] 6,-8"},
    {"BitwiseNot", "0,-8:i32[2]", "", "i32[2] -1,7"},
    {"GlobalLpPool", "3,4:f32[1,1,2]", "", "f32[1,1,1] 5"},
    {"GlobalLpPool", "3,-4:f32[1,1,2]", "p:i=1", "f32[1,1,1] 7"},
    {"BatchNormalization", "3,5:f32[2] 2:f32[1] 1:f32[1] 3:f32[1] 1:f32[1]", "epsilon:f=0",
     "f32[2] 1,5"},
    {"BatchNormalization>1", "1,5:f32[2,1] 2:f32[1] 1:f32[1] 4:f32[1] 1:f32[1]",
     "training_mode:i=1 momentum:f=0.5", "f32[1] 3.5"},
    {"BatchNormalization>1", "1,5:f32[2,1] 2:f32[1] 1:f32[1] 4:f32[1] 1:f32[1]", "",
     "!further outputs only with training_mode 1"},
    {"Dropout", "1,2:f32[2] 0:f32[] 1:bool[]", "", "f32[2] 1,2"},
    {"Dropout", "1,2:f32[2] 0.5:f32[] 1:bool[]", "", "!nothing is drawn"},
    {"HannWindow", "4:i64[]", "", "f32[4] 0,0.5,1,0.5"},
    {"HammingWindow", "3:i64[]", "periodic:i=0 output_datatype:i=11",
     "f64[3] 0.08695652173913043,1,0.08695652173913043"},
    {"BlackmanWindow", "0:i64[]", "", "!its size is no extent"},
    {"DFT", "1,2,3,4:f32[1,4,1]", "", "f32[1,4,2] 10,0,-2,2,-2,0,-2,-2"},
    {"DFT", "1,2,3,4:f32[1,4,1] 2:i64[]", "", "f32[1,2,2] 3,0,-1,0"},
    {"DFT", "10,0,-2,2,-2,0:f32[1,3,2]", "inverse:i=1 onesided:i=1", "f32[1,4,1] 1,2,3,4"},
    {"DFT", "1,2:f32[2]", "", "!no sequence"},
    {"STFT", "1,2,3,4:f32[1,4] 2:i64[] - 2:i64[]", "", "f32[1,2,2,2] 3,0,-1,0,7,0,-1,0"},
    {"STFT", "1,2,3,4:f32[1,4] 2:i64[] 1,2:f32[2]", "", "f32[1,2,2,2] 5,0,-3,0,11,0,-5,0"},
    {"STFT", "1,2,3,4:f32[1,4] 2:i64[] - 5:i64[]", "", "!do not fit each other"},
    {"GridSample", "1,2,3,4:f32[1,1,2,2] 0,0,-1,-1:f32[1,1,2,2]", "", "f32[1,1,1,2] 2.5,0.25"},
    {"GridSample", "1,2,3,4:f32[1,1,2,2] 0,0,-1,-1:f32[1,1,2,2]", "padding_mode:s=border",
     "f32[1,1,1,2] 2.5,1"},
    {"GridSample", "1,2,3,4:f32[1,1,4] 1.5,-3:f32[1,2,1]",
     "mode:s=nearest padding_mode:s=reflection align_corners:i=1", "f32[1,1,2] 3,4"},
    {"GridSample", "1,2,4,8:f32[1,1,4] 0:f32[1,1,1]", "mode:s=cubic", "f32[1,1,1] 2.71875"},
    {"GridSample", "1,2:f32[1,1,2] 0:f32[1,1,1]", "mode:s=area", "!its mode is 'area'"},
    {"RoiAlign", "1,2,3,4:f32[1,1,2,2] 0,0,2,2:f32[1,4] 0:i64[1]", "sampling_ratio:i=2",
     "f32[1,1,1,1] 2.5"},
    {"RoiAlign", "1,2,3,4:f32[1,1,2,2] 0,0,2,2:f32[1,4] 0:i64[1]", "", "!its sampling_ratio is 0"},
    {"DeformConv", ":f32[1,1,2,2] :f32[1,1,1,2] 0,0,0,0,1,0,0,0:f32[1,4,2,1]", "",
     "f32[1,1,2,1] 9,11"},
    {"DeformConv", ":f32[1,1,2,2] :f32[1,1,1,2] :f32[1,4,2,2]", "", "!do not fit each other"},
    {"AffineGrid", "1,0,0,0,1,1:f32[1,2,3] 1,1,1,2:i64[4]", "", "f32[1,1,2,2] -0.5,1,0.5,1"},
    {"AffineGrid", "1,0,0,0,1,1:f32[1,2,3] 1,1,1,2:i64[4]", "align_corners:i=1",
     "f32[1,1,2,2] -1,0,1,0"},
    {"AffineGrid", "1,0,0,0,1,1:f32[1,2,3] 1,1,2:i64[3]", "", "!do not fit it"},
    {"Col2Im", ":f32[1,4,2] 2,3:i64[2] 2,2:i64[2]", "", "f32[1,1,2,3] 1,5,4,5,13,8"},
    {"Col2Im", ":f32[1,4,2] 2,4:i64[2] 2,2:i64[2]", "", "!does not fit the blocks"},
    {"Compress", ":f32[2,3] 0,1,1:bool[3]", "axis:i=-1", "f32[2,2] 2,3,5,6"},
    {"Compress", ":f32[2,3] 0,1,0,0,1:bool[5]", "", "f32[2] 2,5"},
    {"Compress", ":f32[2,3] 1:bool[3]", "axis:i=0", "!longer than its axis"},
    {"Det", "1,2,3,4:f32[2,2]", "", "f32[] -2"},
    {"Det", "2,0,1,1,3,2,1,1,4:f64[1,3,3]", "", "f64[1] 18"},
    {"Det", ":f32[5,5]", "", "!of up to 4 rows"},
    {"MaxUnpool", "5,6:f32[1,1,2] 1,2:i64[1,1,2]", "kernel_shape:I=2 strides:I=2",
     "f32[1,1,4] 0,5,6,0"},
    {"MaxUnpool", "5,6:f32[1,1,2] 1,2:i64[1,1,2] 1,1,5:i64[3]", "kernel_shape:I=2 strides:I=2",
     "f32[1,1,5] 0,5,6,0,0"},
    {"ReverseSequence", ":f32[3,2] 3,2:i64[2]", "", "f32[3,2] 5,4,3,2,1,6"},
    {"ReverseSequence", ":f32[2,2,1] 1,2:i64[2]", "batch_axis:i=0 time_axis:i=1",
     "f32[2,2,1] 1,2,4,3"},
    {"ReverseSequence", ":f32[2,2] 1,2:i64[2]", "batch_axis:i=1 time_axis:i=1", "!its axes"},
    {"TensorScatter", ":f32[2,3,1] 8,9:f32[2,1,1] 2,0:i64[2]", "", "f32[2,3,1] 1,2,8,9,5,6"},
    {"TensorScatter", ":f32[1,3,1] 8,9:f32[1,2,1] 5:i64[1]", "mode:s=circular", "f32[1,3,1] 9,2,8"},
    {"TensorScatter", ":f32[1,3,1] 8,9:f32[1,2,1]", "axis:i=0", "!do not fit each other"},
    {"ai.onnx.ml:Binarizer", "1,2,3:f32[3]", "threshold:f=2", "f32[3] 0,0,1"},
    {"ai.onnx.ml:ArrayFeatureExtractor", ":f32[2,3] 2,0:i64[1,2]", "", "f32[2,2] 3,1,6,4"},
    {"CausalConvWithState", ":f32[1,1,3] 1,10:f32[1,1,2]", "", "f32[1,1,3] 10,21,32"},
    {"CausalConvWithState", ":f32[1,1,3] 1,10:f32[1,1,2] 7:f32[1] 5:f32[1,1,1]", "",
     "f32[1,1,3] 22,28,39"},
    {"CausalConvWithState>1", ":f32[1,1,1] 1,2,3:f32[1,1,3] - 8,9:f32[1,1,2]", "",
     "f32[1,1,2] 9,1"},
    {"CausalConvWithState", ":f32[1,1,3] 1,10:f32[1,1,2]", "activation:s=relu",
     "!its activation is 'relu'"},
    {"CausalConvWithState>1", ":f32[1,1,3] 1:f32[1,1,1]", "", "!without elements"},
    {"LinearAttention", ":f32[1,2,1] :f32[1,2,1] :f32[1,2,1]", "q_num_heads:i=1 kv_num_heads:i=1",
     "!do not fit its heads"},
    {"ai.onnx.preview:FlexAttention", ":f32[1,1,1] :f32[1,1,1] :f32[1,1,1]", "", "!four axes"},
    {"ai.onnx.ml:Scaler", "1,2,3,4:f32[2,2]", "offset:F=1,0 scale:F=2", "f32[2,2] 0,4,4,8"},
    {"ai.onnx.ml:Scaler", "1,2,3:f32[1,3]", "offset:F=1,0 scale:F=2", "!its offset or scale"},
    {"ai.onnx.ml:Normalizer", "3,-4,0,0:f32[2,2]", "norm:s=L1",
     "f32[2,2] 0.42857143,-0.5714286,0,0"},
    {"ai.onnx.ml:LinearRegressor", "1,2:f32[1,2]", "coefficients:F=3,4 intercepts:F=5",
     "f32[1,1] 16"},
    {"ai.onnx.ml:LinearClassifier", "1,2:f32[1,2]", "coefficients:F=1,0,0,1 classlabels_ints:I=7,9",
     "i64[1] 9"},
    {"ai.onnx.ml:LinearClassifier>1", "1,2:f32[1,2]",
     "coefficients:F=1,0,0,1 classlabels_strings:S=a,b post_transform:s=LOGISTIC",
     "f32[1,2] 0.7310586,0.8807971"},
    {"ai.onnx.ml:LinearClassifier", "1,2:f32[1,2]",
     "coefficients:F=1,0,0,1 classlabels_strings:S=a,b", "!its labels are texts"},
    {"ai.onnx.ml:LinearRegressor", "1,2:f32[1,2]", "coefficients:F=3,4 post_transform:s=PROBIT",
     "!PROBIT is not supported"},
    {"ai.onnx.ml:ZipMap", "1,2:f32[1,2]", "classlabels_int64s:I=7,9", "f32[1,2] 1,2"},
#define TREE(modes, children)                                                                      \
    "nodes_treeids:I=0,0,0 nodes_nodeids:I=0,1,2 nodes_featureids:I=1,0,0 nodes_values:F=2.5,0,0 " \
    "nodes_modes:S=" modes ",LEAF,LEAF nodes_truenodeids:I=" children                              \
    ",0,0 nodes_falsenodeids:I=2,0,0 "
    {"ai.onnx.ml:TreeEnsembleRegressor", "9,2,9,3:f32[2,2]",
     TREE("BRANCH_LEQ", "1") "target_treeids:I=0,0 target_nodeids:I=1,2 target_ids:I=0,0 "
                             "target_weights:F=5,6 base_values:F=1",
     "f32[2,1] 6,7"},
    {"ai.onnx.ml:TreeEnsembleClassifier", "9,2,9,3:f32[2,2]",
     TREE("BRANCH_GT", "1") "class_treeids:I=0,0 class_nodeids:I=1,2 class_ids:I=0,0 "
                            "class_weights:F=0.75,0.25 classlabels_int64s:I=4,8",
     "i64[2] 4,8"},
    {"ai.onnx.ml:TreeEnsembleClassifier>1", "9,2,9,3:f32[2,2]",
     TREE("BRANCH_GT", "1") "class_treeids:I=0,0 class_nodeids:I=1,2 class_ids:I=0,0 "
                            "class_weights:F=0.75,0.25 classlabels_int64s:I=4,8",
     "f32[2,2] 0.75,0.25,0.25,0.75"},
    {"ai.onnx.ml:TreeEnsembleRegressor", "9,2:f32[1,2]", TREE("BRANCH_LEQ", "7"),
     "!a node has no such child"},
    {"ai.onnx.ml:TreeEnsembleRegressor", "9,2:f32[1,2]", TREE("BRANCH_LEQ", "0"), "!or a cycle"},
    {"ai.onnx.ml:TreeEnsembleRegressor", "9:f32[1,1]", TREE("BRANCH_LEQ", "1"),
     "!a node has no such child, feature or mode"},
    {"MaxPool>1", "1,9,3,4,5,6,7,8,9:f32[1,1,3,3]", "kernel_shape:I=2,2 pads:I=1,0,0,0",
     "i64[1,1,3,2] 1,1,1,1,7,8"},
    {"MaxPool>1", "1,9,3,4,5,6,7,8,9:f32[1,1,3,3]", "kernel_shape:I=3,2 storage_order:i=1",
     "i64[1,1,1,2] 3,3"},
    {"ai.onnx.preview:FlexAttention", ":f32[1,1,1,1] :f32[1,1,2,1] 3,5:f32[1,1,2,1]",
     "scale:f=0.6931472", "f32[1,1,1,1] 4.3333333"},
    {"DFT", "1,2,3,4:f32[1,4,1] - 7:i64[]", "", "!axis 7 of 3"},
    {"DFT", "1,2,3,4:f32[1,4,1] - 2:i64[]", "", "!its axis is that of the parts"},
    {"DFT", "1,2,3,4:f32[1,4,1] 0:i64[]", "", "!its length is no extent"},
    {"HannWindow", "4:i64[]", "output_datatype:i=7", "!its output_datatype"},
    {"HannWindow", "4:f32[]", "", "!must be a constant integer"},
    {"GridSample", "1,2,3,4:f32[1,1,2,2] nan,0:f32[1,1,1,2]", "", "f32[1,1,1,1] nan"},
    {"RoiAlign", "1,2,3,4:f32[1,1,2,2] 0,0,2,2:f32[1,4] 0:i64[1]",
     "sampling_ratio:i=2 mode:s=max coordinate_transformation_mode:s=output_half_pixel",
     "f32[1,1,1,1] 4"},
    {"RoiAlign", "1,2,3,4:f32[1,1,2,2] 0,0,2:f32[1,3] 0:i64[1]", "sampling_ratio:i=2",
     "!do not fit each other"},
    {"DeformConv",
     "1,2,3,4:f32[1,2,1,2] 1,10:f32[2,1,1,1] 0,0,0,0,0,0,0,-1:f32[1,4,1,2] 5,6:f32[2] "
     "1,2,1,1:f32[1,2,1,2]",
     "group:i=2 offset_group:i=2", "f32[1,2,1,2] 6,9,36,36"},
    {"ai.onnx.ml:TreeEnsembleRegressor", "9,2,9,3:f32[2,2]",
     TREE("BRANCH_LT", "1") "target_treeids:I=0,0,0 target_nodeids:I=1,1,2 target_ids:I=0,1,1 "
                            "target_weights:F=5,7,6 n_targets:i=2 aggregate_function:s=MAX",
     "f32[2,2] 5,7,0,6"},
    {"ai.onnx.ml:TreeEnsembleRegressor", "9,nan,9,2.5:f32[2,2]",
     TREE("BRANCH_EQ", "1") "target_treeids:I=0,0 target_nodeids:I=1,2 target_ids:I=0,0 "
                            "target_weights:F=5,6 aggregate_function:s=AVERAGE "
                            "nodes_missing_value_tracks_true:I=1,0,0",
     "f32[2,1] 5,5"},
    {"ai.onnx.ml:TreeEnsembleRegressor", "9,nan,9,2.5:f32[2,2]",
     TREE("BRANCH_NEQ", "1") "target_treeids:I=0,0 target_nodeids:I=1,2 target_ids:I=0,0 "
                             "target_weights:F=5,6 aggregate_function:s=MIN",
     "f32[2,1] 5,6"},
    {"ai.onnx.ml:TreeEnsembleRegressor", "9,2:f32[1,2]", TREE("BRANCH_BEST", "1"),
     "!an unknown mode"},
    {"ai.onnx.ml:TreeEnsembleRegressor", "9,2:f32[1,2]",
     TREE("BRANCH_LEQ", "1") "target_treeids:I=0 target_nodeids:I=5 target_ids:I=0 "
                             "target_weights:F=5",
     "!a vote is of no leaf"},
    {"ai.onnx.ml:TreeEnsembleRegressor", "9,2:f32[1,2]",
     TREE("BRANCH_LEQ", "1") "base_values:F=1,2", "!its base_values"},
    {"ai.onnx.ml:TreeEnsembleRegressor", "9,2:f32[1,2]",
     TREE("BRANCH_LEQ", "1") "target_treeids:I=0 target_nodeids:I=1,2", "!lists of votes differ"},
    {"ai.onnx.ml:TreeEnsembleRegressor", "9,2:f64[1,2]", TREE("BRANCH_LEQ", "1"), "!is no f32"},
    {"ai.onnx.ml:TreeEnsembleClassifier>1", "9,2,9,3:f32[2,2]",
     TREE("BRANCH_GTE", "1") "class_treeids:I=0,0 class_nodeids:I=1,2 class_ids:I=0,0 "
                             "class_weights:F=1,-1 classlabels_strings:S=a,b "
                             "post_transform:s=LOGISTIC",
     "f32[2,2] 0.7310586,0.2689414,0.2689414,0.7310586"},
    {"ai.onnx.ml:TreeEnsembleClassifier>1", "9,2,9,3:f32[2,2]",
     TREE("BRANCH_GTE", "1") "class_treeids:I=0,0 class_nodeids:I=1,2 class_ids:I=1,1 "
                             "class_weights:F=0.75,0.25 classlabels_strings:S=a,b",
     "f32[2,2] 0,0.25,0,0.75"},
};

static void test_samples(void **state)
{
    (void)state;
    WPK_MODEL_CASES(samples);
}

/* Interpret a model of input x, and compare its output. */
static void check_model(struct wpk_model_fixture *model, const char *shape, const double *x,
                        const double *expected, int count)
{
    struct wpk_graph graph;
    struct wpk_buf problems = {0};
    double y[16];
    double *outputs[] = {y};

    assert_int_equal(wpk_onnx_read(wpk_model_fixture_write(model, SIZE_MAX), &graph, NULL), WPK_OK);
    if (shape != NULL) {
        assert_int_equal(wpk_graph_set_shape(&graph, shape, NULL), WPK_OK);
    }
    (void)!wpk_graph_infer(&graph, &problems);
    assert_string_equal(wpk_buf_text(&problems), "");
    assert_int_equal(wpk_graph_interpret(&graph, &x, outputs, NULL), WPK_OK);
    for (int i = 0; i < count; i++) {
        assert_true(fabs(y[i] - expected[i]) < 1e-6);
    }
    wpk_buf_fini(&problems);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(model);
}

/* Relu and weights of 1 sum the steps up; sequences of one and of three steps. */
static void test_sequence_lengths(void **state)
{
    struct wpk_model_fixture model = {.opset = 14};
    const double x[] = {1, 1, 2, 2, 3, 3};

    (void)state;
    for (int i = 0; i < 3; i++) {
        wpk_model_fixture_input(&model, "x", "f32[3,2,1]");
        wpk_model_fixture_constant(&model, "w", "f32[1,1,1]", "1");
        wpk_model_fixture_constant(&model, "lengths", "i32[2]", "1,3");
        wpk_model_fixture_node(&model, "RNN", "x,w,w,,lengths", "y,last",
                               i == 2 ? "activations:S=Relu direction:s=reverse"
                                      : "activations:S=Relu");
        wpk_model_fixture_output(&model, i == 1 ? "last" : "y");
        check_model(&model, NULL, x,
                    i == 0   ? (const double[]){1, 1, 0, 3, 0, 6}
                    : i == 1 ? (const double[]){1, 6}
                             : (const double[]){1, 6, 0, 5, 0, 3},
                    i == 1 ? 2 : 6);
    }
}

/* The state of the delta rule: k (v - S k) is added in each step. */
static void test_linear_attention(void **state)
{
    struct wpk_model_fixture model = {.opset = 27};
    const double x[] = {1, 2};

    (void)state;
    for (int i = 0; i < 2; i++) {
        wpk_model_fixture_input(&model, "x", "f32[1,2,1]");
        wpk_model_fixture_constant(&model, "v", "f32[1,2,1]", "3,4");
        wpk_model_fixture_constant(&model, "beta", "f32[1,2,1]", "1,0.5");
        wpk_model_fixture_node(&model, "LinearAttention", i == 0 ? "x,x,v" : "x,x,v,,,beta",
                               "y,state",
                               i == 0 ? "q_num_heads:i=1 kv_num_heads:i=1 update_rule:s=linear"
                                      : "q_num_heads:i=1 kv_num_heads:i=1 update_rule:s=delta");
        wpk_model_fixture_output(&model, "y");
        check_model(&model, NULL, x, i == 0 ? (const double[]){3, 22} : (const double[]){3, 2}, 2);
    }
}

/* Data decides which elements remain, and the user how many. */
static void test_compress_on_data(void **state)
{
    struct wpk_model_fixture model = {.opset = 18};
    const double x[] = {5, -1, 7, 0};

    (void)state;
    wpk_model_fixture_input(&model, "x", "f32[4]");
    wpk_model_fixture_constant(&model, "zero", "f32[]", "0");
    wpk_model_fixture_node(&model, "Greater", "x,zero", "condition", "");
    wpk_model_fixture_node(&model, "Compress", "x,condition", "y", "");
    wpk_model_fixture_output(&model, "y");
    check_model(&model, "y=2", x, (const double[]){5, 7}, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_sequence_lengths),
        cmocka_unit_test(test_linear_attention),
        cmocka_unit_test(test_compress_on_data),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
