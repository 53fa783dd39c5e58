/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/draw.h"

#include "common/crypto.h"
#include "schema/convert.h"

#include <math.h>
#include <string.h>

#define CHUNK 1024

/* The uniform set of integers of 32 bits and more. */
#define INTEGER_MOST 1000

struct wpk_domain wpk_domain_all(void)
{
    return (struct wpk_domain){-WPK_DOMAIN_MOST, WPK_DOMAIN_MOST};
}

static double draw_real(struct wpk_rng *rng, enum wpk_draw_domain domain)
{
    double unit = wpk_rng_unit(rng);
    switch (domain) {
    case WPK_DRAW_POSITIVE:
        return 0.125 + 0.875 * unit;
    case WPK_DRAW_ABOVE_ONE:
        return 1.125 + 1.875 * unit;
    case WPK_DRAW_BELOW_ONE:
        return 0.875 * (2 * unit - 1);
    default:
        return 2 * unit - 1;
    }
}

double wpk_draw_uniform(struct wpk_rng *rng, enum wpk_dtype dtype, enum wpk_draw_domain domain)
{
    bool positive = domain == WPK_DRAW_POSITIVE || domain == WPK_DRAW_ABOVE_ONE;
    switch (dtype) {
    case WPK_BOOL:
        return (double)wpk_rng_below(rng, 2);
    case WPK_U8:
        return (double)wpk_rng_between(rng, positive ? 1 : 0, 255);
    case WPK_I8:
        return (double)wpk_rng_between(rng, positive ? 1 : -128, 127);
    case WPK_I16:
    case WPK_I32:
    case WPK_I64:
        return (double)wpk_rng_between(rng, positive ? 1 : -INTEGER_MOST, INTEGER_MOST);
    default:
        return draw_real(rng, domain);
    }
}

/* The seed with what the name hashes to, in the same order of bytes everywhere. */
static void start(struct wpk_rng *rng, uint64_t seed, const char *name)
{
    uint8_t hash[WPK_SHA256_SIZE];
    uint64_t own = 0;

    wpk_crypto_sha256(name, strlen(name), hash);
    for (int i = 0; i < 8; i++) {
        own = own << 8 | hash[i];
    }
    wpk_rng_seed(rng, seed ^ own);
}

/* The part of [low, high] in the domain; if it is empty, `room` above the domain's lower end. */
static struct wpk_domain meet(struct wpk_domain domain, double low, double high, double room)
{
    struct wpk_domain part = {fmax(domain.low, low), fmin(domain.high, high)};

    if (part.low > part.high || (part.low == part.high && domain.low < domain.high)) {
        part.low = domain.low > -WPK_DOMAIN_MOST ? domain.low : domain.high - room;
        part.high = fmin(part.low + room, domain.high);
    }
    return part;
}

double wpk_draw_integer(struct wpk_rng *rng, struct wpk_domain domain, double low, double high)
{
    struct wpk_domain whole = {ceil(domain.low), floor(domain.high)};
    struct wpk_domain part = meet(whole, low, high, 1);

    return (double)wpk_rng_between(rng, (int64_t)part.low, (int64_t)part.high);
}

static double draw_in(struct wpk_rng *rng, enum wpk_dtype dtype, struct wpk_domain domain)
{
    if (dtype == WPK_BOOL) {
        return wpk_draw_uniform(rng, dtype, WPK_DRAW_ANY);
    }
    if (wpk_dtype_is_float(dtype)) {
        struct wpk_domain part = meet(domain, -1, 1, 1);
        return part.low + (part.high - part.low) * wpk_rng_unit(rng);
    }
    bool is_wide = wpk_dtype_size(dtype) > 1;
    double low = is_wide ? -INTEGER_MOST : dtype == WPK_U8 ? 0 : -128;
    double high = is_wide ? INTEGER_MOST : dtype == WPK_U8 ? 255 : 127;
    return wpk_draw_integer(rng, domain, low, high);
}

/* From `interval`, unless it is NULL, else from the uniform set of `domain`. */
static void draw(uint64_t seed, const char *name, enum wpk_dtype dtype, enum wpk_draw_domain domain,
                 const struct wpk_domain *interval, int64_t count, void *out)
{
    struct wpk_rng rng;
    double chunk[CHUNK];

    start(&rng, seed, name);
    for (int64_t done = 0; done < count; done += CHUNK) {
        int64_t now = count - done < CHUNK ? count - done : CHUNK;
        for (int64_t i = 0; i < now; i++) {
            chunk[i] = interval != NULL ? draw_in(&rng, dtype, *interval)
                                        : wpk_draw_uniform(&rng, dtype, domain);
        }
        wpk_convert_narrow(dtype, chunk, now, (char *)out + (size_t)done * wpk_dtype_size(dtype));
    }
}

void wpk_draw_tensor(uint64_t seed, const char *canonical, enum wpk_dtype dtype,
                     enum wpk_draw_domain domain, int64_t count, void *out)
{
    draw(seed, canonical, dtype, domain, NULL, count, out);
}

void wpk_draw_in_domain(uint64_t seed, const char *name, enum wpk_dtype dtype,
                        struct wpk_domain domain, int64_t count, void *out)
{
    draw(seed, name, dtype, WPK_DRAW_ANY, &domain, count, out);
}
