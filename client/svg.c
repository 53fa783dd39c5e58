/* SPDX-License-Identifier: Apache-2.0 */
#include "client/output.h"

void wpk_svg_begin(struct wpk_buf *out, int width, int height, const char *style)
{
    wpk_buf_printf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
        "height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n<style>\n"
        ".ground{fill:#fff}text{fill:#222}.axis,.grid,.best,.vendor{stroke:#222;fill:none}\n"
        ".grid{stroke:#ccc}.best{stroke-width:2}.vendor{stroke-dasharray:6 4}\n"
        "text.faint{fill:#777}.box{fill:#e8f0f8;stroke:#7a96b4}\n"
        "@media(prefers-color-scheme:dark){.ground{fill:#181818}text{fill:#ddd}\n"
        ".axis,.best,.vendor{stroke:#ddd}.grid{stroke:#444}text.faint{fill:#999}\n"
        ".box{fill:#223040;stroke:#7a96b4}}\n"
        "%s</style>\n<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n",
        width, height, width, height, style, width, height);
}

void wpk_svg_text(struct wpk_buf *out, double x, double y, const char *anchor, const char *kind,
                  const char *text)
{
    if (text[0] == '\0') {
        return;
    }
    wpk_buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"", x, y, anchor);
    if (kind[0] != '\0') {
        wpk_buf_printf(out, " class=\"%s\"", kind);
    }
    wpk_buf_append_byte(out, '>');
    for (const char *at = text; *at != '\0'; at++) {
        const char *escaped = *at == '<' ? "&lt;" : *at == '&' ? "&amp;" : NULL;
        if (escaped != NULL) {
            wpk_buf_append_text(out, escaped);
        } else {
            wpk_buf_append_byte(out, *at);
        }
    }
    wpk_buf_append_text(out, "</text>\n");
}
