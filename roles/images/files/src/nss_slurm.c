/* Copyright (c) 2026, slurm_ops.kubernetes authors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * libnss_slurm: who the user of a job is, asked of the job's own slurmstepd.
 *
 * A worker Pod knows no users. With LaunchParameters=enable_nss_slurm each slurmstepd holds the passwd entry and the
 * groups of its job's user, as slurmctld (or the client, with AuthInfo=use_client_ids) resolved them, and gives them to
 * the processes of that job over its socket SlurmdSpoolDir/NODE_JOB.STEP. This module asks there, so that whoami, id,
 * ~user and getent work inside a job. Outside of jobs it knows nobody.
 *
 * Debian does not package Slurm's own module; this one speaks the same protocol (seen on 24.11 and 26.05): integers in
 * host order, texts as length and bytes without an end mark.
 *   hello   -> protocol version              <- protocol version of slurmstepd, negative: refused
 *   GETPW   -> request, mode, uid, name      <- found; name, password, uid, gid, gecos, home, shell
 *   GETGR   -> request, mode, gid, name      <- count; each: name, password, gid, member
 *
 * /etc/nss_slurm.conf may name another SlurmdSpoolDir (%n there is NodeName, or else the host's name). Nothing here may
 * look up a user or a host itself: it would end up in here again.
 */

#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <nss.h>
#include <pthread.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SLURM_PROTOCOL
#error "compile with -DSLURM_PROTOCOL=NUMBER, 42 for Slurm 24.11 and one more for each release after it"
#endif

enum request { GETPW = 24, GETGR = 25 };
/* What slurmstepd compares: the user or group asked for and the asking process, or the process alone. */
enum mode { MATCH_ENTRY_AND_PROCESS = 0, MATCH_PROCESS = 2 };

#define NO_ID 0xfffffffeu
#define TIMEOUT_SECONDS 5
#define LONGEST_TEXT 65536
#define MOST_GROUPS 65536

/* The caller's buffer, filled from the front. */
struct buffer {
    char *at;
    size_t left;
    bool too_small;
};

static char spool[sizeof(((struct sockaddr_un *)0)->sun_path)];
static pthread_once_t spool_once = PTHREAD_ONCE_INIT;

static void find_spool(void)
{
    char pattern[256] = "/var/spool/slurmd", node[256] = "", line[512];
    FILE *file = fopen("/etc/nss_slurm.conf", "re");

    if (file) {
        while (fgets(line, sizeof(line), file)) {
            char key[256], value[256];

            if (sscanf(line, " %255[A-Za-z] = %255s", key, value) != 2)
                continue;
            if (!strcasecmp(key, "SlurmdSpoolDir"))
                strcpy(pattern, value);
            else if (!strcasecmp(key, "NodeName"))
                strcpy(node, value);
        }
        fclose(file);
    }
    if (!node[0] && !gethostname(node, sizeof(node) - 1))
        node[strcspn(node, ".")] = '\0';

    char *wildcard = strstr(pattern, "%n");
    int length;

    if (wildcard)
        length = snprintf(spool, sizeof(spool), "%.*s%s%s", (int)(wildcard - pattern), pattern, node, wildcard + 2);
    else
        length = snprintf(spool, sizeof(spool), "%s", pattern);
    if (length < 0 || (size_t)length >= sizeof(spool))
        spool[0] = '\0';
}

/* NODE_JOB.STEP or NODE_JOB.STEP.COMPONENT */
static bool is_step_socket(const char *name)
{
    const char *at = strrchr(name, '_');
    int numbers = 0;

    if (!at)
        return false;
    do {
        size_t digits = strspn(++at, "0123456789");

        if (!digits)
            return false;
        at += digits;
        numbers++;
    } while (*at == '.');
    return !*at && (numbers == 2 || numbers == 3);
}

static bool send_all(int fd, const void *data, size_t size)
{
    const char *at = data;

    while (size) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

static bool receive_all(int fd, void *data, size_t size)
{
    char *at = data;

    while (size) {
        ssize_t got = recv(fd, at, size, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static bool receive_text(int fd, struct buffer *buffer, char **text)
{
    int length;

    if (!receive_all(fd, &length, sizeof(length)) || length < 0 || length > LONGEST_TEXT)
        return false;
    if ((size_t)length + 1 > buffer->left) {
        buffer->too_small = true;
        return false;
    }
    if (!receive_all(fd, buffer->at, (size_t)length))
        return false;
    buffer->at[length] = '\0';
    *text = buffer->at;
    buffer->at += length + 1;
    buffer->left -= (size_t)length + 1;
    return true;
}

static int connect_step(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval timeout = {.tv_sec = TIMEOUT_SECONDS};
    int hello = SLURM_PROTOCOL << 8, answer;
    int length = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", spool, name);

    if (length < 0 || (size_t)length >= sizeof(address.sun_path))
        return -1;

    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    /* A slurmstepd that is just ending may accept and never answer. */
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) || !send_all(fd, &hello, sizeof(hello)) ||
        !receive_all(fd, &answer, sizeof(answer)) || answer < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Ask one step after the other until one knows; the connection to read the entries from, or -1. */
static int ask(enum request request, enum mode mode, unsigned id, const char *name, int *found)
{
    struct dirent *entry;
    int fd = -1, numbers[2] = {request, mode};
    int length = name ? (int)strnlen(name, LONGEST_TEXT) : 0;

    pthread_once(&spool_once, find_spool);

    DIR *directory = opendir(spool);

    if (!directory)
        return -1;
    while (fd < 0 && (entry = readdir(directory))) {
        if (!is_step_socket(entry->d_name))
            continue;
        fd = connect_step(entry->d_name);
        if (fd < 0)
            continue;
        if (!send_all(fd, numbers, sizeof(numbers)) || !send_all(fd, &id, sizeof(id)) ||
            !send_all(fd, &length, sizeof(length)) || !send_all(fd, name, (size_t)length) ||
            !receive_all(fd, found, sizeof(*found)) || *found <= 0) {
            close(fd);
            fd = -1;
        }
    }
    closedir(directory);
    return fd;
}

static enum nss_status outcome(bool complete, const struct buffer *buffer, int *error)
{
    if (complete)
        return NSS_STATUS_SUCCESS;
    if (buffer->too_small) {
        *error = ERANGE;
        return NSS_STATUS_TRYAGAIN;
    }
    *error = ENOENT;
    return NSS_STATUS_NOTFOUND;
}

static enum nss_status find_user(enum mode mode, uid_t uid, const char *name, struct passwd *user, char *space,
                                 size_t size, int *error)
{
    struct buffer buffer = {.at = space, .left = size};
    int found, fd = ask(GETPW, mode, uid, name, &found);
    bool complete = fd >= 0 && receive_text(fd, &buffer, &user->pw_name) &&
                    receive_text(fd, &buffer, &user->pw_passwd) &&
                    receive_all(fd, &user->pw_uid, sizeof(user->pw_uid)) &&
                    receive_all(fd, &user->pw_gid, sizeof(user->pw_gid)) &&
                    receive_text(fd, &buffer, &user->pw_gecos) && receive_text(fd, &buffer, &user->pw_dir) &&
                    receive_text(fd, &buffer, &user->pw_shell);

    if (fd >= 0)
        close(fd);
    return outcome(complete, &buffer, error);
}

static bool receive_group(int fd, struct group *group, struct buffer *buffer)
{
    /* The list of members comes first in the buffer, because pointers have to be aligned. */
    size_t padding = -(size_t)buffer->at % sizeof(char *);

    if (buffer->left < padding + 2 * sizeof(char *)) {
        buffer->too_small = true;
        return false;
    }
    group->gr_mem = (char **)(void *)(buffer->at + padding);
    buffer->at += padding + 2 * sizeof(char *);
    buffer->left -= padding + 2 * sizeof(char *);
    group->gr_mem[1] = NULL;
    return receive_text(fd, buffer, &group->gr_name) && receive_text(fd, buffer, &group->gr_passwd) &&
           receive_all(fd, &group->gr_gid, sizeof(group->gr_gid)) && receive_text(fd, buffer, &group->gr_mem[0]);
}

static enum nss_status find_group(gid_t gid, const char *name, struct group *group, char *space, size_t size,
                                  int *error)
{
    struct buffer buffer = {.at = space, .left = size};
    int found, fd = ask(GETGR, MATCH_ENTRY_AND_PROCESS, gid, name, &found);
    bool complete = fd >= 0 && receive_group(fd, group, &buffer);

    if (fd >= 0)
        close(fd);
    return outcome(complete, &buffer, error);
}

enum nss_status _nss_slurm_getpwnam_r(const char *name, struct passwd *user, char *space, size_t size, int *error)
{
    return find_user(MATCH_ENTRY_AND_PROCESS, NO_ID, name, user, space, size, error);
}

enum nss_status _nss_slurm_getpwuid_r(uid_t uid, struct passwd *user, char *space, size_t size, int *error)
{
    return find_user(MATCH_ENTRY_AND_PROCESS, uid, NULL, user, space, size, error);
}

enum nss_status _nss_slurm_getgrnam_r(const char *name, struct group *group, char *space, size_t size, int *error)
{
    return find_group(NO_ID, name, group, space, size, error);
}

enum nss_status _nss_slurm_getgrgid_r(gid_t gid, struct group *group, char *space, size_t size, int *error)
{
    return find_group(gid, NULL, group, space, size, error);
}

/* The list of all users is the one user of the job. */
static _Thread_local bool user_listed;

enum nss_status _nss_slurm_setpwent(int stay_open)
{
    (void)stay_open;
    user_listed = false;
    return NSS_STATUS_SUCCESS;
}

enum nss_status _nss_slurm_endpwent(void)
{
    return NSS_STATUS_SUCCESS;
}

enum nss_status _nss_slurm_getpwent_r(struct passwd *user, char *space, size_t size, int *error)
{
    if (user_listed) {
        *error = ENOENT;
        return NSS_STATUS_NOTFOUND;
    }

    enum nss_status status = find_user(MATCH_PROCESS, NO_ID, NULL, user, space, size, error);

    /* TRYAGAIN asks for the same entry once more, with a larger buffer. */
    user_listed = status != NSS_STATUS_TRYAGAIN;
    return status;
}

/* The list of all groups is the groups of the job's user. Asked for anew at each step: no state but a number. */
static _Thread_local int groups_listed;

enum nss_status _nss_slurm_setgrent(int stay_open)
{
    (void)stay_open;
    groups_listed = 0;
    return NSS_STATUS_SUCCESS;
}

enum nss_status _nss_slurm_endgrent(void)
{
    groups_listed = 0;
    return NSS_STATUS_SUCCESS;
}

enum nss_status _nss_slurm_getgrent_r(struct group *group, char *space, size_t size, int *error)
{
    struct buffer buffer = {.at = space, .left = size};
    int found = 0, fd = ask(GETGR, MATCH_PROCESS, NO_ID, NULL, &found);
    bool complete = fd >= 0 && groups_listed < found;

    for (int i = 0; complete && i <= groups_listed; i++) {
        /* Those before it are read over. */
        buffer = (struct buffer){.at = space, .left = size};
        complete = receive_group(fd, group, &buffer);
    }
    if (fd >= 0)
        close(fd);
    if (complete)
        groups_listed++;
    return outcome(complete, &buffer, error);
}

/* All groups of a user at once, for id and the like. */
enum nss_status _nss_slurm_initgroups_dyn(const char *name, gid_t main_group, long *start, long *size, gid_t **groups,
                                          long limit, int *error)
{
    struct passwd user;
    struct group group;
    char space[4096];
    enum nss_status status = find_user(MATCH_ENTRY_AND_PROCESS, NO_ID, name, &user, space, sizeof(space), error);

    if (status != NSS_STATUS_SUCCESS)
        return status == NSS_STATUS_TRYAGAIN ? NSS_STATUS_UNAVAIL : status;

    int found = 0, fd = ask(GETGR, MATCH_PROCESS, NO_ID, NULL, &found);
    bool complete = fd >= 0 && found <= MOST_GROUPS;

    for (int i = 0; complete && i < found; i++) {
        struct buffer buffer = {.at = space, .left = sizeof(space)};

        complete = receive_group(fd, &group, &buffer);
        if (!complete || group.gr_gid == main_group || (limit > 0 && *start >= limit))
            continue;
        if (*start == *size) {
            long larger = *size ? *size * 2 : 16;
            gid_t *grown = realloc(*groups, (size_t)larger * sizeof(**groups));

            if (!grown) {
                complete = false;
                break;
            }
            *groups = grown;
            *size = larger;
        }
        (*groups)[(*start)++] = group.gr_gid;
    }
    if (fd >= 0)
        close(fd);
    if (!complete) {
        *error = EAGAIN;
        return NSS_STATUS_UNAVAIL;
    }
    return NSS_STATUS_SUCCESS;
}
