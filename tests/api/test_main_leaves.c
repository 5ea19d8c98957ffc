/* SPDX-License-Identifier: MIT */
/*
 * A program that leaves its main function by pthread_exit ends with the last thread, even if
 * threads of the library exist. It ends no earlier, and not before the queued callbacks have run.
 * Readers do not wait for a section that the main thread left.
 *
 * ctest: not-with thread (ThreadSanitizer has a thread of its own, so none is the last)
 * ctest: not-with address (at exit LeakSanitizer says which threads it could not stop)
 */
#define _GNU_SOURCE

#include <time.h>

#include <prudence/call.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "support/gp_child.h"
#include "support/suite.h"
#include "support/threads.h"

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        abort();
}

static void at_exit(void)
{
    say("exit;");
}

/* Uses SIGKILL, because the library's threads block all other signals. */
static void die_if_it_takes_long(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec time = {.it_value = {.tv_sec = CHILD_PATIENCE}};
    timer_t timer;

    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &time, NULL))
        abort();
}

static void *work(void *main_thread)
{
    pthread_join(*(pthread_t *)main_thread, NULL);
    usleep(20000); /* long enough for any bug to show */
    say("thread;");
    return NULL;
}

static void leave_a_thread(void)
{
    static pthread_t self, thread;

    self = pthread_self();
    if (pthread_create(&thread, NULL, work, &self))
        abort();
}

static void called(struct prudence_head *head)
{
    usleep(20000);
    say("called;");
}

static void leave_a_callback(void)
{
    static struct prudence_head head;

    prudence_call(&head, called);
}

static void *leave_in_a_child(void *unused)
{
    pid_t child;

    usleep(20000); /* by now the helper most likely waits, which the child must not count */
    child = fork();
    if (child == 0) {
        die_if_it_takes_long();
        pthread_exit(NULL); /* the child's main thread */
    }
    waitpid(child, NULL, 0);
    return unused;
}

static void fork_in_a_thread(void)
{
    in_thread(leave_in_a_child, NULL);
}

static void *waits_for_readers(void *main_thread)
{
    pthread_join(*(pthread_t *)main_thread, NULL);
    prudence_synchronize();
    say("over;");
    return NULL;
}

/* The main thread stays as a zombie, inside its section. */
static void leave_inside_a_section(void)
{
    static pthread_t self, thread;

    self = pthread_self();
    prudence_read_lock();
    if (pthread_create(&thread, NULL, waits_for_readers, &self))
        abort();
}

static void play(const char *role)
{
    die_if_it_takes_long();
    atexit(at_exit);
    if (!strcmp(role, "thread"))
        leave_a_thread();
    if (!strcmp(role, "callback"))
        leave_a_callback();
    if (!strcmp(role, "fork"))
        fork_in_a_thread();
    if (!strcmp(role, "inside"))
        leave_inside_a_section();
    pthread_exit(NULL);
}

static void run(const char *role, const char *options, const char *says)
{
    struct child_result result;

    child_again(role, options, &result);
    if (!child_exited_with(&result, 0) || strcmp(result.output, says))
        print_error("'%s', '%s': status %#x, '%s'\n", role, options, (unsigned)result.status,
                    result.output);
    assert_true(child_exited_with(&result, 0));
    assert_string_equal(result.output, says);
}

TEST(no_thread_is_left)
{
    run("alone", "background=0", "exit;");
    run("alone", "background=idle", "exit;");
}

TEST(the_helper_is_left)
{
    run("alone", "background=1", "exit;");
}

TEST(a_thread_of_the_program_is_left)
{
    run("thread", "background=1", "thread;exit;");
}

TEST(a_callback_is_left)
{
    run("callback", "background=0", "called;exit;");
    run("callback", "background=1", "called;exit;");
}

TEST(a_section_ends_with_its_main_thread)
{
    struct child_result result;

    child_again("inside", "background=0", &result);
    assert_true(child_exited_with(&result, 0));
    assert_non_null(strstr(result.output, "exits inside a read-side critical section"));
    assert_non_null(strstr(result.output, "over;exit;"));
}

TEST(of_a_forked_child)
{
    run("fork", "background=1", "exit;exit;");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        play(argv[1]);
    return suite_run(NULL, NULL);
}
