/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runner/runner_child.h"

#include "common/clock.h"
#include "runtime/gpu/cuda_driver.h"
#include "runtime/gpu/gpu_program.h"
#include "worker/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_S 30
#define MODULES_KEPT 8 /* an anchor's two, and those of the last candidates */
#define END_S 10

static wpk_err make_context(bool emulated, struct wpk_diag *diag)
{
    const struct wpk_cuda_driver *driver = NULL;
    int device = 0;
    void *context = NULL;
    wpk_err err = wpk_cuda_driver_open(emulated, &driver, diag);
    if (err != WPK_OK) {
        return err;
    }
    int result = driver->cuDeviceGet(&device, 0);
    result =
        result == WPK_CUDA_SUCCESS ? driver->cuDevicePrimaryCtxRetain(&context, device) : result;
    return result == WPK_CUDA_SUCCESS
               ? WPK_OK
               : wpk_cuda_driver_fail(driver, result, "making a context on the GPU", diag);
}

void wpk_gpu_keep_context(bool emulated)
{
    if (make_context(emulated, NULL) == WPK_OK) { /* else modules would outlive their contexts */
        wpk_gpu_module_keep(MODULES_KEPT);
    }
}

wpk_err wpk_gpu_probe(bool emulated, struct wpk_diag *diag)
{
    char text[WPK_DIAG_TEXT_MAX] = "";
    int ends[2];
    if (pipe(ends) != 0) {
        return WPK_OK;
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        struct wpk_diag why = {0};
        if (make_context(emulated, &why) != WPK_OK) { /* say why there is none, or nothing */
            (void)!write(ends[1], why.text, strlen(why.text) + 1);
        }
        _exit(0);
    }
    close(ends[1]);
    struct pollfd polled = {.fd = ends[0], .events = POLLIN};
    ssize_t size = 0;
    int ready = 0;
    do {
        ready = pid > 0 ? poll(&polled, 1, ANSWER_S * 1000) : -1;
    } while (ready < 0 && pid > 0 && errno == EINTR);
    if (ready > 0) {
        size = read(ends[0], text, sizeof(text) - 1);
    } else if (ready == 0) {
        size = snprintf(text, sizeof(text), "it makes no context within %d s", ANSWER_S);
    }
    close(ends[0]);
    if (pid > 0) {
        int status = 0;
        kill(pid, SIGKILL);
        (void)!wpk_process_reap(pid, END_S * WPK_NS_PER_S, &status);
    }
    return size <= 0 ? WPK_OK : wpk_fail(diag, WPK_ENOENT, "%s", text);
}
