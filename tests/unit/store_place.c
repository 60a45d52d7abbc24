/* SPDX-License-Identifier: Apache-2.0 */
#include "store_place.h"

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define POSTGRES_BINS "/usr/lib/postgresql/[1-9]*/bin"
#define START_MS      30000
#define END_TRIES     300 /* of REST_MS: a server that is ending still writes */
#define REST_MS       100

struct place place;

/* A program of PostgreSQL's, of the newest version that is installed; false where there is none. */
static bool find_program(const char *name, char path[128])
{
	glob_t found = {0};
	bool is_there = glob(POSTGRES_BINS, 0, NULL, &found) == 0;

	if (is_there)
		(void)snprintf(path, 128, "%s/%s", found.gl_pathv[found.gl_pathc - 1], name);
	globfree(&found);
	return is_there && access(path, X_OK) == 0;
}

static void become_nobody_special(void)
{
	const struct passwd *who = getpwnam("postgres");

	if (geteuid() != 0)
		return;
	who = who ? who : getpwnam("nobody");
	if (!who || setgroups(0, NULL) < 0 || setgid(who->pw_gid) < 0 || setuid(who->pw_uid) < 0)
		_exit(127);
}

/* PostgreSQL refuses root. Its output goes to a file in the folder. A kill -9 of the test's group must not reach it: it
 * would leave shared memory behind, which a fast shutdown does not. */
static pid_t place_spawn(const char *const *argv)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	become_nobody_special();
	(void)setsid();
	(void)prctl(PR_SET_PDEATHSIG, SIGINT); /* a fast shutdown, where the test dies */
	if (chdir(place.dir) < 0 || !freopen("output", "a", stdout) || dup2(1, 2) < 0)
		_exit(127);
	execv(argv[0], (char *const *)argv);
	_exit(127);
}

static const struct db_sql place_select = {.text = "SELECT 1"};

static bool place_answers(void)
{
	struct db *db = NULL;
	bool is_there;

	if (db_postgres.open(place.where, DB_WRITE, &db, NULL) < 0)
		return false;
	is_there = db_run_values(db, &place_select, NULL, 0, NULL, NULL) == 1;
	db_close(db);
	return is_there;
}

int place_start_server(void)
{
	char program[128];
	const char *const argv[] = {program, "-D", "data", "-k", place.dir, "-c",
		"listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=32MB", "-c",
		"max_connections=60", NULL};
	int64_t until = clock_mono_ns() + START_MS * CLOCK_NS_PER_MS;
	int status;

	if (!find_program("postgres", program))
		return -1;
	place.server = place_spawn(argv);
	while (!place_answers()) {
		if (waitpid(place.server, &status, WNOHANG) == place.server ||
			clock_mono_ns() > until)
			return -1;
		(void)usleep(20000);
	}
	return 0;
}

void place_stop_server(int signal)
{
	if (place.server <= 0)
		return;
	(void)kill(place.server, signal);
	(void)waitpid(place.server, NULL, 0);
	place.server = 0;
}

static int place_make_server(void)
{
	char program[128];
	const char *const initdb[] = {program, "-D", "data", "--no-sync", "-A", "trust", "-U",
		"cloche", "-E", "UTF8", "--locale=C.UTF-8", NULL};
	const struct passwd *who = getpwnam("postgres");
	int status = 0;
	pid_t pid;

	who = who ? who : getpwnam("nobody");
	if (geteuid() == 0 && (!who || chown(place.dir, who->pw_uid, who->pw_gid) < 0))
		return -1;
	(void)snprintf(
		place.where, sizeof(place.where), "postgres://cloche@/postgres?host=%s", place.dir);
	if (!find_program("initdb", program))
		return -1;
	pid = place_spawn(initdb);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return -1;
	return place_start_server();
}

static int place_remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return remove(path);
}

static void place_remove(void)
{
	(void)nftw(place.dir, place_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void place_end(void)
{
	place_stop_server(SIGINT);
	if (*place.dir)
		place_remove();
}

/* Outlives a test that is killed, out of reach of what is sent to its terminal or its group, and removes the folder when
 * the last process of the test is gone. The server ends by itself then: see place_spawn(). */
static void place_guard(void)
{
	int pipes[2], null;
	char c;

	if (pipe2(pipes, O_CLOEXEC) < 0 || fork() != 0)
		return; /* the test keeps its end of the pipe until it ends */
	(void)setsid();
	(void)close(pipes[1]);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3; fd++)
		(void)dup2(
			null, fd); /* whoever reads the test's output waits for all that hold it */
	while (read(pipes[0], &c, 1) < 0)
		continue;
	for (int i = 0; i < END_TRIES && access(place.dir, F_OK) == 0; i++) {
		place_remove();
		(void)usleep(REST_MS * 1000);
	}
	_exit(0);
}

static void place_show_output(void)
{
	char path[80], line[512];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/output", place.dir);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		(void)fputs(line, stderr);
	if (file)
		(void)fclose(file);
}

void place_begin(int argc, char **argv)
{
	char program[128];

	(void)snprintf(place.dir, sizeof(place.dir), "/tmp/cloche-store-XXXXXX");
	place.is_postgres = argc > 1 && strcmp(argv[1], "postgres") == 0;
	if (place.is_postgres && !find_program("postgres", program)) {
		(void)fprintf(
			stderr, "skipped: PostgreSQL is not installed (package postgresql)\n");
		exit(77);
	}
	if (place.is_postgres && !db_postgres.listen) {
		(void)fprintf(stderr, "skipped: built without PostgreSQL\n");
		exit(77);
	}
	if (!mkdtemp(place.dir))
		exit(1);
	place_guard();
	if (place.is_postgres && place_make_server() < 0) {
		place_show_output();
		place_end();
		exit(1);
	}
	if (!place.is_postgres)
		(void)snprintf(place.where, sizeof(place.where), "sqlite:%s/db", place.dir);
}

void place_empty(void)
{
	struct db *db = NULL;
	char path[192];
	static const char *const ends[] = {"", "-wal", "-shm"};

	for (size_t i = 0; !place.is_postgres && i < 3; i++) {
		(void)snprintf(
			path, sizeof(path), "%s%s", place.where + strlen("sqlite:"), ends[i]);
		(void)unlink(path);
	}
	if (!place.is_postgres)
		return;
	assert_int_equal(db_postgres.open(place.where, DB_WRITE, &db, NULL), 0);
	assert_int_equal(
		db_postgres.script(db, "DROP SCHEMA public CASCADE; CREATE SCHEMA public"), 0);
	db_close(db);
}

void place_only_sqlite(const char *why)
{
	if (!place.is_postgres)
		return;
	print_message("skipped on PostgreSQL: %s\n", why);
	skip();
}

void place_only_postgres(const char *why)
{
	if (place.is_postgres)
		return;
	print_message("skipped on SQLite: %s\n", why);
	skip();
}

struct store *place_open(void)
{
	struct store *store = NULL;
	struct err err = {0};

	assert_good(store_open(place.where, &store, &err));
	return store;
}

int place_clear(void **state)
{
	static const char clear[] =
		"TRUNCATE account, tombstone, audit, delivery, idempotency, rate CASCADE;"
		"UPDATE counter SET last = 0";
	struct db *db = NULL;

	if (!place.is_postgres) {
		place_empty();
		return 0;
	}
	assert_int_equal(db_postgres.open(place.where, DB_WRITE, &db, NULL), 0);
	(void)db_postgres.script(db, clear); /* fails before the first test, which finds nothing */
	db_close(db);
	return 0;
}

int place_setup(void **state)
{
	(void)place_clear(state);
	*state = place_open();
	return 0;
}

int place_teardown(void **state)
{
	store_close(*state);
	return 0;
}

void place_people(struct store *store)
{
	static const char *const ids[] = {"a", "b"};
	struct err err = {0};
	char name[16], key[16], hash[16], sandbox[16];

	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(name, sizeof(name), "team-%s", ids[i]);
		(void)snprintf(key, sizeof(key), "k-%s", ids[i]);
		(void)snprintf(hash, sizeof(hash), "h-%s", ids[i]);
		(void)snprintf(sandbox, sizeof(sandbox), "sb-%s", ids[i]);
		assert_good(store_account_add(store,
			&(struct store_account){.id = ids[i],
				.name = name,
				.max_sandboxes = 10,
				.max_execs = 5,
				.created_ms = 7},
			&err));
		assert_good(store_key_add(store,
			&(struct store_key){.id = key,
				.account = ids[i],
				.hash = hash,
				.prefix = "clo_ab",
				.name = "first",
				.role = "admin",
				.rate_limit = 100,
				.created_ms = 8},
			&err));
		assert_good(store_sandbox_put(store,
			&(struct store_sandbox){.id = sandbox,
				.account = ids[i],
				.name = "box",
				.state = "running",
				.place = "/records/1",
				.created_ms = 9},
			&err));
	}
}

int main(int argc, char **argv)
{
	int n_failed;

	place_begin(argc, argv);
	n_failed = contract_run() + log_run() + hostile_run() + opening_run() + racing_run() +
	           plans_run();
	place_end();
	return n_failed ? 1 : 0;
}
