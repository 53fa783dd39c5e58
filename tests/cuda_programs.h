/* SPDX-License-Identifier: Apache-2.0 */
/* Programs whose candidates for GPUs are tested. */
#ifndef WPK_TESTS_CUDA_PROGRAMS_H
#define WPK_TESTS_CUDA_PROGRAMS_H

#include "tests/cuda_check.h"

/* Programs of each shape that a launch may have; sums of sixteenths are exact. */
static const struct {
    const char *text;
    double tolerance;
    const char *algorithm; /* "": any */
} programs[] = {
    {"input A f32[64,48]\ninput B f32[48,96]\noutput Y f32[64,96]\n"
     "Y[i,j] = sum.f32(k:48) A[i,k] * B[k,j]\n",
     0, ""},
    {"input A f32[49,37]\nconstant B f32[70,37]\ninput C f32[70]\nintermediate T f32[49,70]\n"
     "output Y f32[49,70]\nT[i,j] = sum.f32(k:37) A[i,k] * B[j,k]\n"
     "Y[i,j] = max(T[i,j] + C[j], 0)\n",
     0, ""},
    {"input A f32[3,33,20]\ninput B f32[3,20,1]\noutput Y f32[3,33,1]\n"
     "Y[n,i,j] = sum.f32(k:20) A[n,i,k] * B[n,k,j]\n",
     0, ""},
    {"input X f32[1,8,15,15]\nconstant W f32[20,8,3,3]\noutput Y f32[1,20,8,8]\n"
     "Y[n,k,y,x] = sum.f32(c:8,r:3,s:3) X[n,c,2*y+r-1,2*x+s-1] * W[k,c,r,s]\n",
     0, ""},
    {"input X f32[1,10,14,9]\nconstant W f32[10,3,3]\noutput Y f32[1,10,14,9]\n"
     "Y[n,c,y,x] = sum.f32(r:3,s:3) X[n,c,y+r-1,x+s-1] * W[c,r,s]\n",
     0, ""},
    {"input X f32[2,3,9,11]\noutput Y f32[2,3,5,6]\n"
     "Y[n,c,y,x] = max.f32(r:3,s:3) X[n,c,2*y+r-1,2*x+s-1 | -inf]\n",
     0, ""},
    {"input X f32[13,192]\nintermediate M f32[13]\nintermediate E f32[13,192]\n"
     "intermediate D f32[13]\noutput Y f32[13,192]\nM[i] = max.f32(k:192) X[i,k]\n"
     "E[i,k] = exp(X[i,k] - M[i])\nD[i] = sum.f32(k:192) E[i,k]\nY[i,k] = E[i,k] / D[i]\n",
     1e-5, ""},
    {"input Q f32[2,17,16]\ninput K f32[2,17,16]\ninput V f32[2,17,16]\n"
     "intermediate S f32[2,17,17]\nintermediate L f32[2,17,17]\nintermediate M f32[2,17]\n"
     "intermediate E f32[2,17,17]\nintermediate D f32[2,17]\nintermediate O f32[2,17,16]\n"
     "output Y f32[2,17,16]\nS[h,q,k] = sum.f32(e:16) Q[h,q,e] * K[h,k,e]\n"
     "L[h,q,k] = select(k <= q, S[h,q,k] * 0.0625, -inf)\nM[h,q] = max.f32(k:17) L[h,q,k]\n"
     "E[h,q,k] = exp(L[h,q,k] - M[h,q])\nD[h,q] = sum.f32(k:17) E[h,q,k]\n"
     "O[h,q,d] = sum.f32(k:17) E[h,q,k] * V[h,k,d]\nY[h,q,d] = O[h,q,d] / D[h,q]\n",
     1e-4, ""},
    {"input X f32[1009]\noutput Y f32[1009]\nY[i] = X[i] * (1 + erf(X[i] * 0.70710677))\n", 1e-5,
     ""},
    {"input X f32[3,64,10]\noutput Y f32[3]\nY[i] = sum.f32(k:64,l:10) X[i,k,l]\n", 0, ""},
    {"input X f32[45,70]\noutput Y f32[70,45]\nY[j,i] = X[i,j]\n", 0, ""},
    /* Long sums: rows and columns of terms, products with a vector, windows, one number, a
     * layernorm whose rows end within four elements or have two axes */
    {"input A f32[70,256]\ninput V f32[256]\noutput Y f32[70]\n"
     "Y[i] = sum.f32(k:256) A[i,k] * V[k]\n",
     0, ""},
    {"input A f32[2,130,36]\ninput V f32[2,130]\ninput Z f32[36]\nintermediate T f32[2,36]\n"
     "output Y f32[2,36]\nT[n,j] = sum.f32(k:130) A[n,k,j] * V[n,k]\n"
     "Y[n,j] = max(T[n,j] + Z[j], 0)\n",
     0, ""},
    {"input X f32[2,12,7,7]\noutput Y f32[2,12]\nY[n,c] = max.f32(h:7,w:7) X[n,c,h,w]\n", 0, ""},
    {"input X f32[5000]\noutput Y f32[]\nY[] = sum.f32(k:5000) X[k]\n", 0, ""},
    {"input X f32[11,6,35]\ninput G f32[6,35]\nintermediate M f32[11]\nintermediate A f32[11]\n"
     "intermediate V f32[11]\noutput Y f32[11,6,35]\nM[i] = sum.f32(h:6,k:35) X[i,h,k]\n"
     "A[i] = M[i] / 210\nV[i] = sum.f32(h:6,k:35) (X[i,h,k] - A[i]) * (X[i,h,k] - A[i])\n"
     "Y[i,h,k] = (X[i,h,k] - A[i]) / sqrt(V[i] + 1) * G[h,k]\n",
     1e-5, ""},
    {"input X f32[4,9,40]\nintermediate S f32[4,9]\noutput Y f32[4,9,40]\n"
     "S[b,i] = sum.f32(k:40) X[b,i,k]\nY[b,i,k] = X[b,i,k] - S[b,i]\n",
     0, ""},
    /* Winograd: whole tiles; tails along both axes, with a residual; one axis; channels last */
    {WPK_CUDA_CONVOLUTION("1", "16", "12", "16"), 0, "winograd(4)"},
    {WPK_CUDA_CONVOLUTION("1", "16", "13", "24"), 0, "winograd(5)"},
    {WPK_CUDA_CONVOLUTION("1", "32", "7", "32"), 0, "winograd(2)"},
    {"input X f32[2,8,61]\nconstant W f32[8,8,3]\noutput Y f32[2,8,61]\n"
     "Y[n,k,x] = sum.f32(c:8,r:3) X[n,c,x+r-1] * W[k,c,r]\n",
     0, "winograd(2)"},
    {"input X f32[1,12,12,8]\nconstant W f32[3,3,8,16]\noutput Y f32[1,12,12,16]\n"
     "Y[n,y,x,k] = sum.f32(c:8,r:3,s:3) X[n,y+r-1,x+s-1,c] * W[r,s,c,k]\n",
     0, "winograd(4)"},
    /* Literals that no chain of transforms reads: tables, at indices of threads and loops */
    {"input X f32[30,40]\nliteral L f32[3] = 0.5,-2,3\noutput Y f32[30,40]\n"
     "Y[i,j] = X[i,j] * L[j % 3]\n",
     0, ""},
    {"input X f32[9,60]\nliteral F f32[20] = 1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,0.5\n"
     "output Y f32[9,41]\nY[i,j] = sum.f32(k:20) F[k] * X[i,j+k]\n",
     0, ""},
    {"input X f32[6,64]\nliteral L f32[2,3] = 1,0,0.5,0.25,-1,2\nintermediate T f32[2,64]\n"
     "output Y f32[2,64]\nT[a,j] = sum.f32(i:3) L[a,i] * X[2*i,j]\nY[a,j] = T[a,j] * T[a,j]\n",
     0, ""},
};

#define PROGRAMS (sizeof(programs) / sizeof(programs[0]))

#endif
