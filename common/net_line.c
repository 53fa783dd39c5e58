/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net_line.h"

#include <stdlib.h>
#include <string.h>

char *wpk_net_line_frame(bool is_local, uint32_t number, const void *data, size_t size,
                         size_t *frame_size)
{
    char *frame = malloc(WPK_NET_HEAD_MAX + size);
    if (frame == NULL) {
        return NULL;
    }
    const struct wpk_net_head head = {.number = number, .size = size};
    char *at = frame + wpk_net_head_write(&head, is_local, frame);
    if (size > 0) {
        memcpy(at, data, size);
    }
    *frame_size = (size_t)(at - frame) + size;
    return frame;
}

/* ---- steps */

static void on_step(void *user)
{
    struct wpk_net_step *step = user;
    pthread_mutex_lock(step->line->lock);
    step->is_over = true;
    pthread_cond_signal(step->line->changed);
    pthread_mutex_unlock(step->line->lock);
}

static bool step_init(struct wpk_net_step *step, struct wpk_net_line *line)
{
    step->line = line;
    return nng_aio_alloc(&step->aio, on_step, step) == 0;
}

/* In TLS, NNG reports an orderly end of a connection as refused. On an open connection, an error of
 * its encryption is not one of a certificate. */
static int code_of_loss(const struct wpk_net_line *line, int code)
{
    bool is_crypto = code == NNG_ECRYPTO || code == NNG_EPEERAUTH;
    if (line->stream != NULL && code == NNG_ECONNREFUSED) {
        return NNG_ECONNSHUT;
    }
    return line->state == WPK_NET_LINE_OPEN && is_crypto ? NNG_ECONNRESET : code;
}

enum taken { TAKEN_NOTHING, TAKEN_SUCCESS, TAKEN_FAILURE };

static enum taken step_take(struct wpk_net_step *step)
{
    pthread_mutex_lock(step->line->lock);
    bool over = step->is_over;
    step->is_over = false;
    pthread_mutex_unlock(step->line->lock);
    if (!over) {
        return TAKEN_NOTHING;
    }
    int code = nng_aio_result(step->aio);
    if (code != 0 && step->line->err == WPK_OK) {
        code = code_of_loss(step->line, code);
        step->line->err = wpk_net_explain(code, step->line->options, &step->line->diag);
    }
    return code == 0 ? TAKEN_SUCCESS : TAKEN_FAILURE;
}

static void start_send(struct wpk_net_line *line, const char *data, size_t size)
{
    nng_iov iov = {.iov_buf = (void *)(uintptr_t)data, .iov_len = size};
    line->is_sending = true;
    nng_aio_set_iov(line->send.aio, 1, &iov);
    nng_stream_send(line->stream, line->send.aio);
}

static void start_receive(struct wpk_net_line *line, int index)
{
    struct wpk_net_step *step = &line->receive[index];
    nng_iov iov = {.iov_buf = line->inputs[index], .iov_len = sizeof line->inputs[index]};
    nng_aio_set_iov(step->aio, 1, &iov);
    nng_stream_recv(line->stream, step->aio);
}

/* ---- opening and closing */

bool wpk_net_line_open(struct wpk_net_line *line, const struct wpk_net_client_options *options,
                       pthread_mutex_t *lock, pthread_cond_t *changed)
{
    memset(line, 0, offsetof(struct wpk_net_line, inputs));
    line->options = options;
    line->lock = lock;
    line->changed = changed;
    line->is_local = wpk_net_is_local(options->url);
    line->wanted = WPK_NET_GREETING_SIZE;
    bool made = step_init(&line->send, line);
    for (int i = 0; i < WPK_NET_LINE_RECEIVES; i++) {
        made = made && step_init(&line->receive[i], line);
    }
    line->err = made ? wpk_net_dialer_make(options, &line->dialer, &line->diag)
                     : wpk_net_translate(NNG_ENOMEM, options->url, &line->diag);
    if (line->err != WPK_OK) {
        return false;
    }
    line->state = WPK_NET_LINE_DIALLING;
    line->is_sending = true;
    nng_stream_dialer_dial(line->dialer, line->send.aio);
    return true;
}

void wpk_net_line_close(struct wpk_net_line *line)
{
    if (line->dialer != NULL) {
        nng_stream_dialer_close(line->dialer);
    }
    if (line->stream != NULL) {
        nng_stream_close(line->stream);
    }
    if (line->state == WPK_NET_LINE_DIALLING) {
        /* In TLS, NNG 1.5.2 frees what nng_aio_stop() would use to cancel a dial that ends. */
        nng_aio_wait(line->send.aio);
    }
    nng_aio_stop(line->send.aio);
    if (line->state == WPK_NET_LINE_DIALLING && nng_aio_result(line->send.aio) == 0) {
        /* It was connected just when nobody wanted it any more. */
        line->stream = nng_aio_get_output(line->send.aio, 0);
    }
    for (int i = 0; i < WPK_NET_LINE_RECEIVES; i++) {
        nng_aio_stop(line->receive[i].aio);
        nng_aio_free(line->receive[i].aio);
    }
    nng_aio_free(line->send.aio);
    nng_stream_free(line->stream);
    nng_stream_dialer_free(line->dialer);
    free(line->frame);
    free(line->body);
    memset(line, 0, offsetof(struct wpk_net_line, inputs));
}

/* ---- going on */

bool wpk_net_line_is_ready(const struct wpk_net_line *line)
{
    return line->send.is_over || line->receive[line->turn].is_over;
}

static void expect_head(struct wpk_net_line *line)
{
    line->wanted = wpk_net_head_size(line->is_local);
    line->got = 0;
}

static enum wpk_net_line_news lose(struct wpk_net_line *line, wpk_err err, const char *text)
{
    wpk_diag_set(&line->diag, "%s: %s", line->options->url, text);
    line->err = err;
    return WPK_NET_LINE_LOST;
}

/* The head is here: make room for the body. A longer message closes the connection. */
static enum wpk_net_line_news begin_body(struct wpk_net_line *line)
{
    struct wpk_net_head head;
    if (!wpk_net_head_read(line->head, line->is_local, line->options->size_max, &head)) {
        return lose(line, WPK_ECORRUPT, "it sends a message that may not come");
    }
    line->number = head.number;
    line->wanted = head.size;
    line->got = 0;
    line->body = malloc(line->wanted + 1);
    if (line->body == NULL) {
        return lose(line, WPK_ENOMEM, "no memory for its message; end other programs");
    }
    line->body[line->wanted] = '\0';
    return WPK_NET_LINE_NOTHING;
}

/* Read of the input what is wanted next. */
static void read_input(struct wpk_net_line *line)
{
    char *into = line->body != NULL ? line->body : line->head;
    size_t size = line->wanted - line->got;
    size = line->input_size < size ? line->input_size : size;
    if (size > 0) {
        memcpy(into + line->got, line->input, size);
    }
    line->got += size;
    line->input += size;
    line->input_size -= size;
    if (line->input_size == 0 && line->input != NULL) {
        line->input = NULL;
        start_receive(line, line->turn);
        line->turn = (line->turn + 1) % WPK_NET_LINE_RECEIVES;
    }
}

/* A whole message, if the input has it. */
static enum wpk_net_line_news read_message(struct wpk_net_line *line)
{
    while (line->input != NULL || (line->body != NULL && line->got == line->wanted)) {
        read_input(line);
        if (line->got < line->wanted) {
            continue;
        }
        if (line->state == WPK_NET_LINE_GREETING) {
            if (memcmp(line->head, wpk_net_greeting_answers, WPK_NET_GREETING_SIZE) != 0) {
                return lose(line, WPK_ECORRUPT, "what listens there is no wpkd");
            }
            line->state = WPK_NET_LINE_OPEN;
            expect_head(line);
        } else if (line->body != NULL) {
            return WPK_NET_LINE_MESSAGE;
        } else if (begin_body(line) == WPK_NET_LINE_LOST) {
            return WPK_NET_LINE_LOST;
        }
    }
    return WPK_NET_LINE_NOTHING;
}

static void connected(struct wpk_net_line *line)
{
    line->stream = nng_aio_get_output(line->send.aio, 0);
    line->state = WPK_NET_LINE_GREETING;
    for (int i = 0; i < WPK_NET_LINE_RECEIVES; i++) {
        start_receive(line, i);
    }
    start_send(line, wpk_net_greeting_asks, WPK_NET_GREETING_SIZE);
}

static bool go_on_sending(struct wpk_net_line *line)
{
    enum taken taken = step_take(&line->send);
    if (taken != TAKEN_SUCCESS) {
        return taken == TAKEN_NOTHING;
    }
    line->is_sending = false;
    if (line->state == WPK_NET_LINE_DIALLING) {
        connected(line);
        return true;
    }
    size_t count = nng_aio_count(line->send.aio);
    if (line->frame == NULL) {
        if (count != WPK_NET_GREETING_SIZE) {
            lose(line, WPK_ECLOSED, "only a part of the greeting was sent; try again");
        }
        return count == WPK_NET_GREETING_SIZE;
    }
    line->sent += count;
    if (line->sent < line->frame_size) {
        start_send(line, line->frame + line->sent, line->frame_size - line->sent);
    } else {
        free(line->frame);
        line->frame = NULL;
    }
    return true;
}

enum wpk_net_line_news wpk_net_line_next(struct wpk_net_line *line, uint32_t *number, char **data,
                                         size_t *size)
{
    if (!go_on_sending(line)) {
        return WPK_NET_LINE_LOST;
    }
    enum wpk_net_line_news news = read_message(line);
    while (news == WPK_NET_LINE_NOTHING) {
        struct wpk_net_step *step = &line->receive[line->turn];
        enum taken taken = step_take(step);
        if (taken != TAKEN_SUCCESS) {
            return taken == TAKEN_NOTHING ? WPK_NET_LINE_NOTHING : WPK_NET_LINE_LOST;
        }
        line->input = line->inputs[line->turn];
        line->input_size = nng_aio_count(step->aio);
        news = read_message(line);
    }
    if (news == WPK_NET_LINE_MESSAGE) {
        *number = line->number;
        *data = line->body;
        *size = line->wanted;
        line->body = NULL;
        expect_head(line);
    }
    return news;
}

bool wpk_net_line_is_idle(const struct wpk_net_line *line)
{
    return line->state == WPK_NET_LINE_OPEN && !line->is_sending;
}

void wpk_net_line_send(struct wpk_net_line *line, char *frame, size_t frame_size)
{
    WPK_ASSERT(wpk_net_line_is_idle(line));
    line->frame = frame;
    line->frame_size = frame_size;
    line->sent = 0;
    start_send(line, frame, frame_size);
}
