/* SPDX-License-Identifier: Apache-2.0 */
#include "search/snapshot.h"

#include "common/crypto.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPACE_ID_SIZE 8 /* bytes of a SHA-256: it guards against mistakes only */
#define RNG_WORDS 4

static void hash_text(struct wpk_crypto_hash *hash, const char *text)
{
    wpk_crypto_hash_add(hash, text, strlen(text) + 1);
}

/* Everything that the index of a choice depends on. */
static void identify_space(const struct wpk_space *space, char out[2 * SPACE_ID_SIZE + 1])
{
    struct wpk_crypto_hash hash;
    uint8_t digest[WPK_SHA256_SIZE];
    wpk_crypto_hash_init(&hash);
    hash_text(&hash, wpk_space_version(space));
    for (int v = 0; v < space->variant_count; v++) {
        const struct wpk_variant *variant = &space->variants[v];
        hash_text(&hash, variant->algorithm);
        hash_text(&hash, variant->layout);
        if (v > 0 && space->lazy) { /* whether it was derived is no matter */
            continue;
        }
        for (int g = 0; g < variant->gene_count; g++) {
            const struct wpk_gene *gene = &variant->genes[g];
            hash_text(&hash, gene->name);
            hash_text(&hash, gene->ordered ? "<" : "");
            for (int c = 0; c < gene->choice_count; c++) {
                hash_text(&hash, gene->choice[c].text);
            }
            hash_text(&hash, "");
        }
    }
    wpk_crypto_hash_finish(&hash, digest);
    wpk_crypto_hex(digest, SPACE_ID_SIZE, out);
}

/* ---- writing */

void wpk_snapshot_begin(struct wpk_buf *out, const char *version, const struct wpk_space *space)
{
    char id[2 * SPACE_ID_SIZE + 1];
    identify_space(space, id);
    wpk_buf_printf(out, "%s %s", version, id);
}

void wpk_snapshot_put_number(struct wpk_buf *out, uint64_t number)
{
    wpk_buf_printf(out, " %" PRIu64, number);
}

void wpk_snapshot_put_real(struct wpk_buf *out, double real)
{
    WPK_ASSERT(isfinite(real));
    wpk_buf_printf(out, " %a", real);
}

void wpk_snapshot_put_rng(struct wpk_buf *out, const struct wpk_rng *rng)
{
    for (int i = 0; i < RNG_WORDS; i++) {
        wpk_snapshot_put_number(out, rng->state[i]);
    }
}

void wpk_snapshot_put_candidate(struct wpk_buf *out, const struct wpk_candidate *candidate)
{
    char genes[2 * WPK_GENES_MAX + 1];
    wpk_crypto_hex(candidate->gene, (size_t)candidate->gene_count, genes);
    wpk_buf_printf(out, " %d:%s", candidate->variant, genes);
}

/* ---- reading */

wpk_err wpk_snapshot_open(struct wpk_snapshot_reader *reader, const char *text, const char *version,
                          const struct wpk_space *space, struct wpk_diag *diag)
{
    char id[2 * SPACE_ID_SIZE + 1];
    size_t version_length = strlen(version);
    if (strncmp(text, version, version_length) != 0 || text[version_length] != ' ') {
        return wpk_fail(diag, WPK_EMISMATCH, "the snapshot is not of version %s", version);
    }
    identify_space(space, id);
    const char *at = text + version_length + 1;
    if (!wpk_begins(at, id)) {
        return wpk_fail(diag, WPK_EMISMATCH, "the snapshot is of another space");
    }
    *reader = (struct wpk_snapshot_reader){.at = at + strlen(id), .space = space};
    return WPK_OK;
}

const char *wpk_snapshot_word(struct wpk_snapshot_reader *reader, size_t *length)
{
    const char *word = reader->at;
    *length = 0;
    if (reader->err != WPK_OK) {
        return word;
    }
    if (*word != ' ') {
        reader->err = WPK_EPARSE;
        return word;
    }
    word++;
    *length = strcspn(word, " ");
    reader->at = word + *length;
    return word;
}

/* True if a conversion took the whole word. Both of the C library's would skip blanks and signs. */
static bool is_whole(struct wpk_snapshot_reader *reader, const char *word, const char *end,
                     size_t length)
{
    if (length == 0 || end != word + length || strchr("0123456789", word[0]) == NULL) {
        reader->err = WPK_EPARSE;
        return false;
    }
    return true;
}

uint64_t wpk_snapshot_number(struct wpk_snapshot_reader *reader, uint64_t max)
{
    size_t length;
    char *end;
    const char *word = wpk_snapshot_word(reader, &length);
    uint64_t number = strtoull(word, &end, 10);
    if (!is_whole(reader, word, end, length)) {
        return 0;
    }
    if (number > max) {
        reader->err = WPK_EPARSE;
        return 0;
    }
    return number;
}

double wpk_snapshot_real(struct wpk_snapshot_reader *reader)
{
    size_t length;
    char *end;
    const char *word = wpk_snapshot_word(reader, &length);
    double real = strtod(word, &end);
    bool negative = word[0] == '-' && length > 1;
    return is_whole(reader, word + negative, end, length - negative) && isfinite(real) ? real : 0;
}

void wpk_snapshot_rng(struct wpk_snapshot_reader *reader, struct wpk_rng *rng)
{
    bool any = false;
    for (int i = 0; i < RNG_WORDS; i++) {
        rng->state[i] = wpk_snapshot_number(reader, UINT64_MAX);
        any = any || rng->state[i] != 0;
    }
    if (!any) { /* the one state that it never leaves */
        reader->err = WPK_EPARSE;
    }
}

static int hex_digit(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = digit == '\0' ? NULL : strchr(digits, digit);
    return at == NULL ? -1 : (int)(at - digits);
}

static wpk_err read_candidate(const struct wpk_space *space, const char *word, size_t length,
                              struct wpk_candidate *out)
{
    char *end;
    long number = strtol(word, &end, 10);
    if (length == 0 || *end != ':' || number < 0 || number >= space->variant_count) {
        return WPK_EPARSE;
    }
    if (wpk_space_variant(space, (int)number) == NULL) {
        bool memory = wpk_space_variant_error(space, (int)number) == WPK_ENOMEM;
        return memory ? WPK_ENOMEM : WPK_EPARSE;
    }
    const struct wpk_variant *variant = &space->variants[number];
    const char *genes = end + 1;
    if (word + length != genes + 2 * variant->gene_count) {
        return WPK_EPARSE;
    }
    out->variant = (int)number;
    out->gene_count = variant->gene_count;
    for (int g = 0; g < variant->gene_count; g++) {
        int high = hex_digit(genes[2 * g]), low = hex_digit(genes[2 * g + 1]);
        int choice = high * 16 + low;
        int choice_count = variant->genes[g].choice_count;
        if (high < 0 || low < 0 || (choice > 0 && choice >= choice_count)) {
            return WPK_EPARSE;
        }
        out->gene[g] = (uint8_t)choice;
    }
    return WPK_OK;
}

void wpk_snapshot_candidate(struct wpk_snapshot_reader *reader, struct wpk_candidate *candidate)
{
    size_t length;
    struct wpk_candidate read = {0};
    const char *word = wpk_snapshot_word(reader, &length);
    wpk_err err = read_candidate(reader->space, word, length, &read);
    if (err != WPK_OK) {
        reader->err = err;
        memset(&read, 0, sizeof read);
    }
    *candidate = read;
}

wpk_err wpk_snapshot_close(struct wpk_snapshot_reader *reader, struct wpk_diag *diag)
{
    if (reader->err == WPK_OK && *reader->at != '\0') {
        reader->err = WPK_EPARSE;
    }
    if (reader->err == WPK_EPARSE) {
        wpk_diag_set(diag, "the snapshot is damaged");
    }
    return reader->err;
}
