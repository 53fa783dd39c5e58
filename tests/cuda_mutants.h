/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of tests/cuda_mutants.c: schedules, and an operator of a space. */
#ifndef WPK_TESTS_CUDA_MUTANTS_H
#define WPK_TESTS_CUDA_MUTANTS_H

#define HEAD "wpk-schedule 2\ntarget cuda-sm_90 threads 1\nby c\n"

/* Blocks of 32 x 16 that move inwards at both ends; steps of 8 terms, 5 in the last one. */
#define PRODUCT                                                                                    \
    HEAD "layout A f32[49,37] 0,1\nlayout B f32[37,70] 0,1\nlayout Y f32[49,70] 0,1\nprogram\n"    \
         "input A f32[49,37]\ninput B f32[37,70]\nintermediate R f32[49,37]\n"                     \
         "intermediate S f32[37,70]\nintermediate T f32[49,70]\noutput Y f32[49,70]\n"             \
         "R[i,k] = A[i,k]\nS[k,j] = B[k,j]\nT[i,j] = sum.f32(k:37) R[i,k] * S[k,j]\n"              \
         "Y[i,j] = max(T[i,j], 0)\nend\n"                                                          \
         "stage Y root\nblock.y i step 32 shift\nblock.x j step 32 shift\n"                        \
         "thread.y i.1 step 4 shift\nthread.x j.1 step 4 shift\nunroll i.2\nunroll j.2\n"          \
         "stage T in Y j\nscope register\nextent i 32 j 32\ninit\nthread.y i step 4 exact\n"       \
         "thread.x j step 4 exact\nunroll i.1\nunroll j.1\nupdate\nserial k step 8 guard\n"        \
         "thread.y i step 4 exact\nthread.x j step 4 exact\nserial k.1\nunroll i.1\nunroll j.1\n"  \
         "stage S in T k\nscope shared\nthread.y k\nthread.x j step 4 exact\nunroll j.1\n"         \
         "stage R in T k\nscope shared\nthread.y i step 4 exact\nthread.x k\nunroll i.1\n"

/* Softmax with a block a row, of which 10 and 14 threads work in turns; X has padding. */
#define ROWS                                                                                       \
    HEAD "layout X f32[5,40] 0,1 pad 0:0,1:2\nlayout Y f32[5,40] 1,0\nprogram\n"                   \
         "input X f32[5,40] pad 0:0,1:2\nintermediate M f32[5]\nintermediate E f32[5,40]\n"        \
         "intermediate S f32[5]\noutput Y f32[40,5]\nM[i] = max.f32(k:40) X[i,k]\n"                \
         "E[i,j] = exp(X[i,j] - M[i])\nS[i] = sum.f32(k:40) E[i,k]\nY[j,i] = E[i,j] / S[i]\nend\n" \
         "stage Y root\nblock.x i\nthread.x j step 3 guard\nunroll j.1\n"                          \
         "stage S in Y i\nscope shared\ninit\nserial i\nupdate\nserial i\nserial k\n"              \
         "stage E in Y i\nscope shared\nthread.x j step 4 exact\nserial j.1\n"                     \
         "stage M in Y i\nscope shared\ninit\nserial i\nupdate\nserial i\nserial k\n"

/* A product in four launches: one operand is copied, then sums begin, grow, and are stored. */
#define LAUNCHES                                                                                   \
    HEAD "layout A f32[9,24] 0,1\nlayout B f32[24,21] 0,1\nlayout Y f32[9,21] 0,1\nprogram\n"      \
         "input A f32[9,24]\ninput B f32[24,21]\nintermediate S f32[24,21]\n"                      \
         "intermediate T f32[9,21]\noutput Y f32[9,21]\nS[k,j] = B[k,j]\n"                         \
         "T[i,j] = sum.f32(k:24) A[i,k] * S[k,j]\nY[i,j] = T[i,j] + 1\nend\n"                      \
         "stage Y root\nblock.x i\nthread.x j step 4 guard\nunroll j.1\n"                          \
         "stage T root\ninit\nblock.x i\nthread.x j\n"                                             \
         "update\nblock.x i step 3 exact\nthread.x j\nserial k\nserial i.1\n"                      \
         "stage S root\nscope global\nblock.y k step 8 exact\nblock.x j\nthread.x k.1\n"

/* A product whose operands are copied ahead, 16 bytes at a time, into two buffers. */
#define AHEAD                                                                                      \
    HEAD "layout A f32[64,48] 0,1\nlayout B f32[48,64] 0,1\nlayout Y f32[64,64] 0,1\nprogram\n"    \
         "input A f32[64,48]\ninput B f32[48,64]\nintermediate R f32[64,48]\n"                     \
         "intermediate S f32[48,64]\nintermediate T f32[64,64]\noutput Y f32[64,64]\n"             \
         "R[i,k] = A[i,k]\nS[k,j] = B[k,j]\nT[i,j] = sum.f32(k:48) R[i,k] * S[k,j]\n"              \
         "Y[i,j] = max(T[i,j], 0)\nend\n"                                                          \
         "stage Y root\nblock.y i step 32 exact\nblock.x j step 32 exact\n"                        \
         "unroll i.1 step 8 exact\nunroll j.1 step 16 exact\nthread.y i.2\n"                       \
         "thread.x j.2 step 2 exact\nunroll j.3\nstage T in Y j\nscope register\n"                 \
         "extent i 32 j 32\ninit\nunroll i step 8 exact\nunroll j step 16 exact\nthread.y i.1\n"   \
         "thread.x j.1 step 2 exact\nunroll j.2\nupdate\nserial k step 8 exact\n"                  \
         "serial k.1 step 4 exact\nunroll k.2\nunroll i step 8 exact\nunroll j step 16 exact\n"    \
         "thread.y i.1\nthread.x j.1 step 2 exact\nunroll j.2\n"                                   \
         "stage S in T k\nscope shared\ndepth 2\nthread.y k\nthread.x j step 4 exact\n"            \
         "lanes j.1\nstage R in T k\nscope shared\npadded 4\ndepth 2\nthread.y i\n"                \
         "thread.x k step 4 exact\nlanes k.1\n"

/* A window whose rows are copied ahead, with zeros outside. */
#define WINDOW                                                                                     \
    HEAD "layout X f32[4,9,16] 0,1,2\nlayout W f32[8,4,3,3] 0,1,2,3\n"                             \
         "layout Y f32[8,9,16] 0,1,2\nprogram\ninput X f32[4,9,16]\nconstant W f32[8,4,3,3]\n"     \
         "intermediate S f32[4,3,3,9,16]\nintermediate T f32[8,9,16]\noutput Y f32[8,9,16]\n"      \
         "S[c,r,s,y,x] = X[c,y+r-1,x+s-1]\n"                                                       \
         "T[k,y,x] = sum.f32(c:4,r:3,s:3) S[c,r,s,y,x] * W[k,c,r,s]\n"                             \
         "Y[k,y,x] = max(T[k,y,x], 0)\nend\n"                                                      \
         "stage Y root\nblock.z y\nblock.y k step 4 exact\nblock.x x step 16 exact\n"              \
         "thread.y k.1 step 2 exact\nthread.x x.1 step 4 exact\nunroll k.2\nunroll x.2\n"          \
         "stage T in Y x\nscope register\nextent k 4 y 1 x 16\ninit\nthread.y k step 2 exact\n"    \
         "thread.x x step 4 exact\nunroll k.1\nunroll x.1\nupdate\nserial c step 2 exact\n"        \
         "serial r\nserial s\nserial c.1\nthread.y k step 2 exact\nthread.x x step 4 exact\n"      \
         "unroll k.1\nunroll x.1\nstage S in T s\nscope shared\ndepth 3\nserial c\nthread.x x\n"

/* A product in four parts a tile, each in a block of its own. */
#define PARTS                                                                                      \
    HEAD "layout A f32[49,64] 0,1\nlayout B f32[64,70] 0,1\nlayout Y f32[49,70] 0,1\nprogram\n"    \
         "input A f32[49,64]\ninput B f32[64,70]\nintermediate R f32[49,64]\n"                     \
         "intermediate S f32[64,70]\nintermediate T f32[49,70]\noutput Y f32[49,70]\n"             \
         "R[i,k] = A[i,k]\nS[k,j] = B[k,j]\nT[i,j] = sum.f32(k:64) R[i,k] * S[k,j]\n"              \
         "Y[i,j] = max(T[i,j], 0)\nend\n"                                                          \
         "stage Y root\nblock.y i step 32 shift\nblock.x j step 32 shift\n"                        \
         "thread.y i.1 step 4 shift\nthread.x j.1 step 4 shift\nunroll i.2\nunroll j.2\n"          \
         "stage T in Y j\nscope register\nextent i 32 j 32\ninit\nthread.y i step 4 exact\n"       \
         "thread.x j step 4 exact\nunroll i.1\nunroll j.1\nupdate atomic\n"                        \
         "block.x k step 16 exact\nserial k.1 step 8 exact\nthread.y i step 4 exact\n"             \
         "thread.x j step 4 exact\nserial k.2\nunroll i.1\nunroll j.1\n"                           \
         "stage S in T k.1\nscope shared\nthread.y k\nthread.x j step 4 exact\nunroll j.1\n"       \
         "stage R in T k.1\nscope shared\nthread.y i step 4 exact\nthread.x k\nunroll i.1\n"

/* Two rows a block, of which 64 threads share the terms: pairs of warps. */
#define SHARES                                                                                     \
    HEAD "layout A f32[7,200] 0,1\nlayout V f32[200] 0\nlayout Y f32[7] 0\nprogram\n"              \
         "input A f32[7,200]\ninput V f32[200]\nintermediate T f32[7]\noutput Y f32[7]\n"          \
         "T[i] = sum.f32(k:200) A[i,k] * V[k]\nY[i] = max(T[i], 0)\nend\n"                         \
         "stage Y root\nblock.x i step 2 shift\nthread.y i.1\n"                                    \
         "stage T in Y i\nscope register\nextent i 2\ninit\nthread.y i\n"                          \
         "update atomic\nserial k step 64 guard\nthread.y i\nthread.x k.1\n"

/* Sums of columns, of which eight threads share the terms: pairs of them are in one warp. */
#define COLUMNS                                                                                    \
    HEAD "layout X f32[70,40] 0,1\nlayout Y f32[40] 0\nprogram\ninput X f32[70,40]\n"              \
         "intermediate T f32[40]\noutput Y f32[40]\nT[j] = sum.f32(k:70) X[k,j]\n"                 \
         "Y[j] = T[j] * 2\nend\n"                                                                  \
         "stage Y root\nblock.x j step 16 shift\nthread.x j.1\n"                                   \
         "stage T in Y j\nscope register\nextent j 16\ninit\nthread.x j\n"                         \
         "update atomic\nserial k step 8 guard\nthread.y k.1\nthread.x j\n"

/* Rows of exponentials: each thread of a row loads four neighbours at once. */
#define LOADS                                                                                      \
    HEAD "layout X f32[6,256] 0,1\nlayout Y f32[6] 0\nprogram\ninput X f32[6,256]\n"               \
         "intermediate T f32[6]\noutput Y f32[6]\nT[i] = sum.f32(k:256) exp(X[i,k])\n"             \
         "Y[i] = T[i] * 2\nend\nstage Y root\nblock.x i step 2 exact\nthread.y i.1\n"              \
         "stage T in Y i\nscope register\nextent i 2\ninit\nthread.y i\nupdate atomic\n"           \
         "serial k step 128 exact\nthread.y i\nthread.x k.1 step 4 exact\nlanes k.2\n"

/* Blocks in groups of two rows, whose columns come one after the other. */
#define ORDER                                                                                      \
    HEAD                                                                                           \
        "layout A f32[128,16] 0,1\nlayout B f32[16,128] 0,1\nlayout Y f32[128,128] 0,1\nprogram\n" \
        "input A f32[128,16]\ninput B f32[16,128]\nintermediate T f32[128,128]\n"                  \
        "output Y f32[128,128]\nT[i,j] = sum.f32(k:16) A[i,k] * B[k,j]\nY[i,j] = T[i,j] + "        \
        "1\nend\n"                                                                                 \
        "stage Y root\nblock.z i step 64 exact\nblock.y j step 32 exact\n"                         \
        "block.x i.1 step 32 exact\nthread.y i.2 step 4 exact\nthread.x j.1\nunroll i.3\n"         \
        "stage T in Y i.1\nscope register\nextent i 32 j 32\ninit\nthread.y i step 4 exact\n"      \
        "thread.x j\nunroll i.1\nupdate\nserial k\nthread.y i step 4 exact\nthread.x j\n"          \
        "unroll i.1\n"

/* First candidates of the space, of the algorithm that is named. */
#define CONVOLUTION                                                                                \
    "input X f32[1,16,12,12]\nconstant W f32[16,16,3,3]\nintermediate T f32[1,16,12,12]\n"         \
    "output Y f32[1,16,12,12]\n"                                                                   \
    "T[n,k,y,x] = sum.f32(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n"                         \
    "Y[n,k,y,x] = max(T[n,k,y,x], 0)\n"

#endif
