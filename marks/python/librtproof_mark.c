/* SPDX-License-Identifier: MIT OR Apache-2.0
 * rtproof_mark.h as a shared library, for languages that cannot include it:
 *   cc -O2 -shared -fPIC -I.. -o librtproof_mark.so librtproof_mark.c */
#include "rtproof_mark.h"

struct rtproof_mark *rtproof_mark_lib_open(const char *name);
void rtproof_mark_lib_begin(struct rtproof_mark *mark);
void rtproof_mark_lib_end(struct rtproof_mark *mark);
void rtproof_mark_lib_close(struct rtproof_mark *mark, const char *name);

struct rtproof_mark *rtproof_mark_lib_open(const char *name) { return rtproof_mark_open(name); }
void rtproof_mark_lib_begin(struct rtproof_mark *mark) { rtproof_mark_begin(mark); }
void rtproof_mark_lib_end(struct rtproof_mark *mark) { rtproof_mark_end(mark); }
void rtproof_mark_lib_close(struct rtproof_mark *mark, const char *name)
{
	rtproof_mark_close(mark, name);
}
