# SPDX-License-Identifier: MIT OR GPL-2.0-only
# Run in the guest by tools/kernel/test, once for each setting of init_on_alloc and init_on_free. The last CPU is isolated.
insmod prudence.ko || exit 1
isolated=preflushing_does_not_wait_for_the_cpu_it_served_last,isolated_cpus_are_left_alone
insmod prudence_test.ko only=$isolated,plain_objects_are_zero_if_the_kernel_wants_that,type_safe_memory_keeps_its_contents,constructed_objects_keep_their_contents,type_safe_constructed_objects_keep_their_contents,blocks_are_zeroed_by_the_page_allocator_only || exit 1
[ "$(cat /sys/module/prudence_test/parameters/failed)" = 0 ] || bad=1
rmmod prudence_test && rmmod prudence || bad=1
exit ${bad:-0}
