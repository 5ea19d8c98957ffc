/* SPDX-License-Identifier: MIT */
/*
 * All subjects, in the order of --list: SUBJECT(NAME, FAMILY, OPTIONS), where FAMILY_family is
 * defined by a file subject_*.c, and OPTIONS are the subject's options of Prudence. A name that
 * ends in + stands for one subject over each allocator (urcu+glibc, urcu+jemalloc, ...). The
 * including file defines SUBJECT.
 */
SUBJECT("prudence", prudence, NULL)
SUBJECT("prudence-fenced", prudence, "reader_mode=fenced")
SUBJECT("prudence-free", prudence, "reader_mode=free")
SUBJECT("prudence-static", prudence_static, NULL)
SUBJECT("prudence-inline", prudence_inline, NULL)
SUBJECT("prudence-replace-inline", prudence_replace_inline, NULL)
SUBJECT("prudence-replace", prudence_replace, NULL)
SUBJECT("prudence-heap", prudence_heap, NULL)
SUBJECT("slices-asked", slices_asked, NULL)
SUBJECT("slices-off", prudence, "slice_extension=0")
SUBJECT("epoch", epoch, NULL)
SUBJECT("hazard", hazard, NULL)
SUBJECT("hazard-fenced", hazard, "reader_mode=fenced")
SUBJECT("classic", classic, NULL)
SUBJECT("plain+prudence", plain_prudence, NULL)
SUBJECT("plain+cache", plain_cache, NULL)
SUBJECT("urcu+", urcu_memb, NULL)
SUBJECT("urcu-percpu+", urcu_memb_percpu, NULL)
SUBJECT("urcu-mb+", urcu_mb, NULL)
SUBJECT("ck-epoch+", ck_epoch, NULL)
SUBJECT("ck-hp+", ck_hp, NULL)
SUBJECT("plain+", plain, NULL)
SUBJECT("floor-loop", floor_loop, NULL)
SUBJECT("floor-array", floor_array, NULL)
SUBJECT("floor-array-called", floor_array_called, NULL)
SUBJECT("floor-rseq", floor_rseq, NULL)
SUBJECT("floor-two-rseqs", floor_two_rseqs, NULL)
SUBJECT("floor-packed-rseq", floor_packed_rseq, NULL)
#undef SUBJECT
