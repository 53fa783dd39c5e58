/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel on the emulator: its schedule is printed as CUDA C, compiled, launched, and compared
 * with the reference. Mistakes of the test itself end it. */
#ifndef WPK_TESTS_CUDA_CHECK_H
#define WPK_TESTS_CUDA_CHECK_H

#include "common/rng.h"
#include "search/space.h"
#include "target/gpu/nvrtc.h"
#include "target/gpu/print.h"
#include "tests/gpu/launch.h"

/* Filled from top to bottom; zero before. */
struct wpk_cuda_subject {
    struct wpk_schedule schedule;
    struct wpk_buf text; /* CUDA C, which a test may change */
    struct wpk_cuda_plan plan;
    bool assembles;       /* compiled to machine code, too, which takes as long again */
    struct wpk_buf cubin; /* the same as machine code */
    struct wpk_ptx ptx;
    int64_t missing[WPK_TENSORS_MAX]; /* elements by which arguments are too small, for tests */
    struct wpk_device_memory memory;
    struct wpk_launch_counts counts;
    struct wpk_traffic *traffic;       /* of launches; NULL: nobody asks for it */
    enum wpk_launch_order order;       /* of blocks and warps */
    uint64_t parts, tickets;           /* addresses; 0: the plan has none */
    uint64_t address[WPK_TENSORS_MAX]; /* of arguments, with their padding */
    double *values[WPK_TENSORS_MAX];   /* owned; of inputs and constants, without padding */
};

/* Open the compiler, or skip the test. */
void wpk_cuda_subject_open(struct wpk_cuda_nvrtc *nvrtc);

void wpk_cuda_subject_parse(const char *head, const char *nest, struct wpk_schedule *out);
/* Print the schedule into `text` and `plan`. */
void wpk_cuda_subject_print(struct wpk_cuda_subject *k);
/* Compile `text` into `ptx`, and into `cubin` if the subject assembles. */
void wpk_cuda_subject_compile(const struct wpk_cuda_nvrtc *nvrtc, struct wpk_cuda_subject *k);
/* Allocate all arguments; what is read gets numbers from -4 to 4 in sixteenths, in which sums are
 * exact, all else NaN. */
void wpk_cuda_subject_fill(struct wpk_cuda_subject *k, struct wpk_rng *rng);
/* Fill what the plan writes with NaN again. */
void wpk_cuda_subject_erase(struct wpk_cuda_subject *k);
/* The bytes of argument `i` of the plan, with its padding. */
size_t wpk_cuda_subject_bytes(const struct wpk_cuda_subject *k, int i);
/* The address of element 0 of argument `i` of the plan. */
uint64_t wpk_cuda_subject_origin(const struct wpk_cuda_subject *k, int i);
/* Run the plan, up to its first fault.
 *   errors  those of wpk_launch_run */
WPK_MUST_CHECK wpk_err wpk_cuda_subject_launch(struct wpk_cuda_subject *k,
                                               struct wpk_kernel_fault_report *report);
/* True if the first output is that of the reference, to a relative `tolerance`; else the first
 * wrong element is in `diag`. Programs with literals have a tolerance of their own. */
bool wpk_cuda_subject_agrees(const struct wpk_cuda_subject *k, double tolerance,
                             struct wpk_diag *diag);
/* Free all of it, and leave it zeroed. */
void wpk_cuda_subject_fini(struct wpk_cuda_subject *k);

/* ---- whole tests: they fail where the emulator or the comparison finds a mistake */

#define WPK_CUDA_HEAD "wpk-schedule 2\ntarget cuda-sm_90 threads 1\nby c\n"

/* A convolution of 3 x 3 with something added, and relu, as a program. */
#define WPK_CUDA_CONVOLUTION(n, c, size, k)                                                        \
    "input X f32[" n "," c "," size "," size "]\nconstant W f32[" k "," c ",3,3]\ninput Z f32[" n  \
    "," k "," size "," size "]\nintermediate T f32[" n "," k "," size "," size                     \
    "]\noutput Y f32[" n "," k "," size "," size "]\nT[n,k,y,x] = sum.f32(c:" c                    \
    ",r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\nY[n,k,y,x] = max(T[n,k,y,x] + Z[n,k,y,x], 0)\n"

/* Print, compile, fill, launch and compare a kernel, which has its schedule. */
void wpk_cuda_subject_run(const struct wpk_cuda_nvrtc *nvrtc, struct wpk_cuda_subject *k,
                          struct wpk_rng *rng, double tolerance);
/* The same with the schedule of a head and a nest, whose CUDA C is in `wpk_cuda_expected` then. */
void wpk_cuda_expect(const char *head, const char *nest, double tolerance,
                     struct wpk_launch_counts *counts);
extern char wpk_cuda_expected[];
/* The kernel has so many barriers, and without any one of them the emulator finds a fault: none is
 * superfluous. */
void wpk_cuda_expect_barriers(const char *head, const char *nest, int expected);

/* ---- spaces of an emulated H100, with free layouts */

void wpk_cuda_derive(const char *text, bool strict, struct wpk_space *space);
/* The schedule of a legal candidate, whose text leads back to it, and whose nest is legal, too. */
void wpk_cuda_lower(const struct wpk_space *space, const struct wpk_candidate *candidate,
                    struct wpk_schedule *out);

#endif
