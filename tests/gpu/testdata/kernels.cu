/* SPDX-License-Identifier: Apache-2.0 */
/* What launch_test.c runs; kernels.ptx is made of it by
 *
 *     nvcc -ptx -arch=sm_80 -o kernels.ptx kernels.cu     (release 13.0) */

/* y [rows][columns] = softmax of x, a block a row, of whole warps. */
extern "C" __global__ void softmax(const float *__restrict__ x, float *__restrict__ y, int columns)
{
    __shared__ float part[32];
    const int thread = threadIdx.x, warps = blockDim.x / 32;
    x += (size_t)blockIdx.x * columns;
    y += (size_t)blockIdx.x * columns;
    float most = -INFINITY, sum = 0;
    for (int i = thread; i < columns; i += blockDim.x) {
        most = fmaxf(most, x[i]);
    }
    for (int by = 16; by > 0; by /= 2) {
        most = fmaxf(most, __shfl_xor_sync(~0u, most, by));
    }
    if (thread % 32 == 0) {
        part[thread / 32] = most;
    }
    __syncthreads();
    for (int i = 0; i < warps; i++) {
        most = fmaxf(most, part[i]);
    }
    __syncthreads();
    for (int i = thread; i < columns; i += blockDim.x) {
        sum += expf(x[i] - most);
    }
    for (int by = 16; by > 0; by /= 2) {
        sum += __shfl_down_sync(~0u, sum, by);
    }
    if (thread % 32 == 0) {
        part[thread / 32] = sum;
    }
    __syncthreads();
    sum = 0;
    for (int i = 0; i < warps; i++) {
        sum += part[i];
    }
    for (int i = thread; i < columns; i += blockDim.x) {
        y[i] = expf(x[i] - most) / sum;
    }
}

#define TILE 32
#define DEPTH 8
#define STAGES 2

static __device__ void copy_4(float *to, const float *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 :
                 : "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from));
}

/* c [n][n] = a [n][n] b [n][n], n a multiple of 32; blocks of 64 threads, 4 x 4 elements each, in
 * two stages that are copied asynchronously. */
extern "C" __global__ void __launch_bounds__(64)
    product(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n)
{
    __shared__ float as[STAGES][DEPTH][TILE + 1], bs[STAGES][DEPTH][TILE];
    const int thread = threadIdx.x, row = thread / 8 * 4, column = thread % 8 * 4;
    const int i0 = blockIdx.y * TILE, j0 = blockIdx.x * TILE;
    float sums[4][4] = {};
    auto fetch = [&](int k0, int stage) {
        for (int e = thread; e < TILE * DEPTH; e += 64) {
            copy_4(&as[stage][e % DEPTH][e / DEPTH], &a[(i0 + e / DEPTH) * n + k0 + e % DEPTH]);
            copy_4(&bs[stage][e / TILE][e % TILE], &b[(k0 + e / TILE) * n + j0 + e % TILE]);
        }
        asm volatile("cp.async.commit_group;");
    };
    fetch(0, 0);
    for (int k0 = 0; k0 < n; k0 += DEPTH) {
        const int stage = k0 / DEPTH % STAGES;
        asm volatile("cp.async.wait_group 0;");
        __syncthreads();
        if (k0 + DEPTH < n) {
            fetch(k0 + DEPTH, 1 - stage);
        }
        for (int k = 0; k < DEPTH; k++) {
            for (int i = 0; i < 4; i++) {
                for (int j = 0; j < 4; j++) {
                    sums[i][j] += as[stage][k][row + i] * bs[stage][k][column + j];
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++) {
        *(float4 *)&c[(i0 + row + i) * n + j0 + column] =
            make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
    }
}

/* Each element by many functions, divisions, a local array that is indexed, and lanes that part. */
extern "C" __global__ void functions(const float *x, const int *divisor, float *y, double *wide,
                                     unsigned char *bytes, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    float powers[8] = {1};
    for (int p = 1; p < 8; p++) {
        powers[p] = powers[p - 1] * x[i];
    }
    float value = powers[i % 8] + tanhf(x[i]) + erff(x[i]) + rsqrtf(fabsf(x[i]) + 1);
    for (int step = 0; step < i % 5; step++) {
        value += powf(fabsf(x[i]) + step, 1.5f) + sinf(x[i]);
    }
    y[i] = value + (float)(i / divisor[i]) + (float)(i % divisor[i]) + logf(2 + x[i] * x[i]);
    wide[i] = exp((double)x[i]) + sqrt((double)i);
    bytes[i] = (unsigned char)(i * 3 >> 1);
}
