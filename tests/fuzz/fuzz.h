/* SPDX-License-Identifier: Apache-2.0 */
/* A fuzz target: one function that is given bytes and must return. A decoder reports faults of the
 * bytes as errors. A fault of the decoder shows as a crash, a failed WPK_ASSERT or a sanitizer's
 * report.
 *
 * driver.c runs a target over its corpus and over mutations of it, from a seed. libFuzzer can run a
 * target, too: clang -fsanitize=fuzzer,address fuzz_job.c ... without driver.c. */
#ifndef WPK_TESTS_FUZZ_FUZZ_H
#define WPK_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Returned for bytes that the target refuses; else 0. No file of the corpus is refused, and
 * libFuzzer adds no such bytes to it. */
#define WPK_FUZZ_REJECTED (-1)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
