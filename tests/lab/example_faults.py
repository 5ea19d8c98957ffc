# SPDX-License-Identifier: MIT
"""Faults of the examples, in addition to the mistake that each program can make itself: a part of a pattern is taken away. The
program must say that it is wrong. name -> fault -> pairs: a text that is once in the part `after`, and its replacement."""

FAULTS = {
    "chat": {
        "a removed member is freed at once": [("prudence_cache_free_deferred(cache, mistake", "prudence_cache_free(cache, mistake")],
        "a broadcast is in no section": [("    prudence_read_lock();\n    reached", "    reached"), ("    prudence_read_unlock();\n", "")],
    },
    "existence_locks": {
        "an unlinked object is freed at once": [("prudence_cache_free_deferred(cache, old)", "prudence_cache_free(cache, old)")],
    },
    "fd_table": {
        "a file is closed with references": [("if (is_last(file)) {", "is_last(file); {")],
    },
    "global_version": {
        "the reader does not read the version again": [("__atomic_load_n(&version, __ATOMIC_RELAXED) == begin", "true")],
        "the writer counts when it is done only": [("__atomic_store_n(&version, version + 1, __ATOMIC_RELAXED);", "")],
    },
    "mark_obsolete": {
        "a closed account is not marked": [("old->closed = true;", "")],
    },
    "handler_shutdown": {
        "the handler is in no section": [("    prudence_read_lock();\n    seen", "    seen"), ("    prudence_read_unlock();\n", "")],
    },
    "level_of_indirection": {
        "a reader takes the settings twice": [("seen->window;", "prudence_dereference(settings)->window;")],
    },
    "name_cache": {
        "renames are not counted": [("__atomic_store_n(&renames, renames + 1, __ATOMIC_RELAXED);", ""),
                                    ("__atomic_store_n(&renames, renames + 1, __ATOMIC_RELEASE);", "")],
    },
    "nbs_writers": {
        "the top is stored, whatever it is by now": [
            ("while (first && !__atomic_compare_exchange_n(&top, &first, next, false, __ATOMIC_ACQUIRE,\n"
             "                                                   __ATOMIC_ACQUIRE));",
             "while (false); if (first) __atomic_store_n(&top, next, __ATOMIC_RELEASE);")],
    },
    "ordered_update": {
        "the size, then the array": [
            ("prudence_assign_pointer(array, copy(larger_size()));", "__atomic_store_n(&size, larger_size(), __ATOMIC_RELEASE);"),
            ("    __atomic_store_n(&size, larger_size(), __ATOMIC_RELEASE);\n    pthread",
             "    prudence_assign_pointer(array, copy(size));\n    pthread")],
    },
    "ordered_by_waiting": {
        "a reader is in no section": [("prudence_read_lock();\n    room", "room"), ("sizeof(long);\n    prudence_read_unlock();", "sizeof(long);")],
        "the size, then the array": [("    prudence_assign_pointer(array, copy(larger_size()));", "    end_update();"),
                                     ("static prudence_gp_t begin_update(void)", "static void end_update(void);\nstatic prudence_gp_t begin_update(void)")],
    },
    "plugin_unload": {
        "a call is in no section": [("    prudence_read_lock();\n    seen", "    seen"), ("    prudence_read_unlock();\n", "")],
    },
    "pure_rcu": {
        "a request is in no section": [("    prudence_read_lock();\n    if", "    if"), ("    prudence_read_unlock();\n", "")],
    },
    "rwlock_analogy": {
        "a route is removed, then added": [("prudence_list_replace_rcu(&old->link, &fresh->link); /* one step */\n        meanwhile();",
                                            "prudence_list_del_rcu(&old->link); meanwhile(); prudence_list_add_rcu(&fresh->link, &routes);")],
    },
    "semaphores": {
        "a set that is removed is not marked": [("old->removed = true;", "")],
    },
    "start_backup": {
        "a change is in no section": [("    prudence_read_lock();\n    result", "    result"), ("    prudence_read_unlock();\n", "")],
    },
    "stall_updates": {
        "readers never stall": [("        if (tries == 1)\n            stall();\n", "")],
        "writers never wait": [("while (!may_update())", "while (false)")],
        "readers stall for ever": [("        if (fresh && tries > 0)\n            go_on();\n", "")],
    },
    "task_list": {
        "a removed task leads nowhere": [("prudence_list_del_rcu(&task->link);", "prudence_list_del_rcu(&task->link); task->link.next = NULL;")],
    },
    "substitute_copy": {
        "the original is changed": [("copy->low = random;", "copy = old; copy->low = random;")],
    },
    "worst_case": {
        "a late answer is taken": [(" || example_now() >= slot->deadline)", ")")],
        "requests get no lifetime": [("    MUST(scm_clock_refresh(timer, slot->request, mistake ? USUAL_MS : WORST_CASE_MS) == 0);\n", "")],
        "requests live by a clock that does not follow time": [
            ("scm_clock_refresh(timer, slot->request, mistake ? USUAL_MS : WORST_CASE_MS)", "scm_refresh(slot->request, WORST_CASE_MS)")],
    },
}
