/* SPDX-License-Identifier: Apache-2.0 */
#include "search/model/prior.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { INPUTS = 7, HIDDEN = 5 };

static void draw(struct wpk_rng *rng, float *x, int count)
{
    for (int i = 0; i < count; i++) {
        x[i] = (float)(2 * wpk_rng_unit(rng) - 1);
    }
}

/* Against differences: the gradient of the result by each weight. */
static void test_gradient(void **state)
{
    (void)state;
    static struct wpk_network network;
    static struct wpk_network_pass pass;
    struct wpk_rng rng;
    float x[INPUTS];
    wpk_rng_seed(&rng, 3);
    wpk_network_init(&network, INPUTS, HIDDEN, &rng);
    draw(&rng, network.weight, wpk_network_weights(&network));
    draw(&rng, x, INPUTS);
    memset(&pass, 0, sizeof(pass));
    (void)wpk_network_forward(&network, x, &pass);
    wpk_network_backward(&network, x, 1, &pass);
    for (int i = 0; i < wpk_network_weights(&network); i++) {
        static struct wpk_network_pass other;
        const float step = 1.0f / 256, kept = network.weight[i];
        network.weight[i] = kept + step;
        double above = wpk_network_forward(&network, x, &other);
        network.weight[i] = kept - step;
        double below = wpk_network_forward(&network, x, &other);
        network.weight[i] = kept;
        assert_true(fabs((above - below) / (2.0 / 256) - pass.gradient[i]) < 1e-4);
    }
}

/* It learns a product, which no linear function is. */
static void test_it_learns(void **state)
{
    (void)state;
    static struct wpk_network network;
    static struct wpk_network_pass pass;
    struct wpk_rng rng;
    double error = 0;
    wpk_rng_seed(&rng, 4);
    wpk_network_init(&network, 2, 16, &rng);
    memset(&pass, 0, sizeof(pass));
    for (int i = 0; i < 40000; i++) {
        float x[2];
        draw(&rng, x, 2);
        double wrong = wpk_network_forward(&network, x, &pass) - (double)(x[0] * x[1]);
        wpk_network_backward(&network, x, wrong, &pass);
        wpk_network_step(&network, 0.05, 0.5, &pass);
        error = 0.999 * error + 0.001 * wrong * wrong;
    }
    assert_true(error < 0.01); /* its variance is 1/9 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_it_learns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
