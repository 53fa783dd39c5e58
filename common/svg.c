/* SPDX-License-Identifier: Apache-2.0 */
#include "common/chart.h"

#include "common/markup.h"

void wpk_svg_begin(struct wpk_buf *out, int width, int height, const char *style)
{
    wpk_markup(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
               "height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n",
               width, height, width, height);
    if (style == NULL) {
        return;
    }
    wpk_markup_raw(
        out, "<style>\n"
             ".ground{fill:#fff}text{fill:#222}.axis,.grid,.best,.vendor{stroke:#222;fill:none}\n"
             ".grid{stroke:#ccc}.best{stroke-width:2}.vendor{stroke-dasharray:6 4}\n"
             "text.faint{fill:#777}.box{fill:#e8f0f8;stroke:#7a96b4}\n"
             "@media(prefers-color-scheme:dark){.ground{fill:#181818}text{fill:#ddd}\n"
             ".axis,.best,.vendor{stroke:#ddd}.grid{stroke:#444}text.faint{fill:#999}\n"
             ".box{fill:#223040;stroke:#7a96b4}}\n");
    wpk_markup_raw(out, style);
    wpk_markup(out, "</style>\n<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n", width,
               height);
}

void wpk_svg_text(struct wpk_buf *out, double x, double y, const char *anchor, const char *kind,
                  const char *text)
{
    if (text[0] == '\0') {
        return;
    }
    wpk_markup(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"", x, y, anchor);
    if (kind[0] != '\0') {
        wpk_markup(out, " class=\"%s\"", kind);
    }
    wpk_markup(out, ">%s</text>\n", text);
}
