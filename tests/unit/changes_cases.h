/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox may do to a folder, and the list that must come of it: three shell scripts (the host's folder, what
 * the sandbox does, what the host does meanwhile). */
#ifndef TESTS_CHANGES_CASES_H
#define TESTS_CHANGES_CASES_H

#include <stdbool.h>

struct changes_case {
	const char *name, *host, *inside, *meanwhile, *want;
	bool partly; /* apply does not bring all of it over */
};

static const struct changes_case changes_cases[] = {
	{"nothing", "echo a > a", ":", ":", ""},
	{"touch is no change", "echo a > a; mkdir d; echo b > d/b",
		"touch a d/b d; touch -d 2020-01-01 a", ":", ""},
	{"same bytes again", "echo a > a", "echo a > a; cp a t; mv t a", ":", ""},
	{"same size and time, other bytes", "echo 0000 > a; touch -d 2020-01-01 a",
		"echo 1111 > a; touch -d 2020-01-01 a", ":", "changed a\n"},
	{"added", "echo a > a", "mkdir -p n/e m; echo x > n/x", ":",
		"added m directory\nadded n/e directory\nadded n/x\n"},
	{"removed folder", "mkdir -p d/e f; echo a > d/a; echo b > d/e/b; ln -s a d/l", "rm -r d f",
		":", "removed d/a\nremoved d/e/b\nremoved d/l link\nremoved f directory\n"},
	{"removed and made again", "mkdir -p base/b; echo a > base/a; echo c > base/b/c",
		"rm -rf base; mkdir base; echo n > base/n; cp -r base bak; mv bak/n bak/n2; rm -rf "
		"base; "
		"mv bak base",
		":", "removed base/a\nremoved base/b/c\nadded base/n2\n"},
	{"removed and written again alike",
		"mkdir -p d/e; echo a > d/a; echo b > d/e/b; echo c > d/e/c",
		"rm -r d; mkdir -p d/e; echo a > d/a; echo b > d/e/b", ":", "removed d/e/c\n"},
	{"renamed folder", "mkdir -p old/sub; echo 1 > old/sub/f; echo 2 > old/g; echo 3 > old/h",
		"mv old new; echo more >> new/sub/f; rm new/h; echo x > new/x", ":",
		"renamed old -> new directory\nremoved old/h\nchanged old/sub/f -> "
		"new/sub/f\nadded new/x\n"},
	{"file renamed in a renamed folder", "mkdir -p old/sub; echo 1 > old/sub/f; echo 2 > old/g",
		"mv old new; mv new/sub/f new/sub/h; mv new/g new/k", ":",
		"renamed old -> new directory\nrenamed old/g -> new/k\nrenamed old/sub/f -> "
		"new/sub/h\n"},
	{"renamed folder below a new one", "mkdir -p a/b/c; echo 1 > a/b/c/f; echo 2 > a/k",
		"mkdir z; mv a/b z/b2; rm a/k", ":",
		"removed a/k\nrenamed a/b -> z/b2 directory\n"},
	{"folder in a renamed folder renamed out", "mkdir -p p/c; echo 1 > p/c/f; echo 2 > p/g",
		"mv p q; mv q/c c2", ":",
		"renamed p/c -> c2 directory\nrenamed p -> q directory\n"},
	{"two folders swapped", "mkdir a b; echo 1 > a/f; echo 2 > b/g", "mv a t; mv b a; mv t b",
		":", "renamed b -> a directory\nrenamed a -> b directory\n"},
	{"three folders in a ring", "mkdir a b c; echo 1 > a/f; echo 2 > b/g; echo 3 > c/h",
		"mv a t; mv b a; mv c b; mv t c; echo 4 > c/f", ":",
		"renamed b -> a directory\nrenamed c -> b directory\nrenamed a -> c directory\n"
		"changed a/f -> c/f\n"},
	{"file in a folder's place, folder in a file's", "mkdir d; echo 1 > d/x; echo 2 > f",
		"mv d t; mv f d; mv t f", ":", "renamed f -> d\nrenamed d -> f directory\n"},
	{"old name taken again", "echo a > a; mkdir d; echo x > d/x",
		"mv a b; echo n > a; mv d e; mkdir d; echo y > d/y", ":",
		"changed a\nadded b\nadded d/y\nrenamed d -> e directory\n"},
	{"into a new folder of the old name",
		"mkdir -p d/s; echo 1 > d/x; echo 2 > d/s/y; echo 3 > f",
		"mv d e; mkdir d; mv f d/f; mv e/s d/s; echo 4 > d/s/z", ":",
		"renamed f -> d/f\nrenamed d/s -> d/s directory\nadded d/s/z\nrenamed d -> e "
		"directory\n"},
	{"into a new folder with a file's old name", "echo a > a; echo b > b",
		"mv a c; mkdir a; mv b a/b", ":", "renamed b -> a/b\nrenamed a -> c\n"},
	{"removed below a renamed folder and its old name", "mkdir d; echo 1 > d/x; echo 2 > d/y",
		"mv d e; rm e/x; mkdir d; echo 3 > d/y", ":",
		"added d/y\nrenamed d -> e directory\nremoved d/x\n"},
	{"hard link", "echo a > a; echo z > z", "ln a b; ln z y; rm z", ":",
		"added b\nrenamed z -> y\n"},
	{"large file with holes", "truncate -s 3M a; echo b > b",
		"truncate -s 9M a; echo c > c; truncate -s 4M c", ":", "changed a\nadded c\n"},
	{"folder without rights", "mkdir d; echo 1 > d/f",
		"echo 2 > d/f; mkdir e; echo 3 > e/g; chmod 0500 d e", ":",
		"mode d 0755 0500 directory\nchanged d/f\nadded e/g\n"},
	{"deep", "mkdir d",
		"p=d; for i in $(seq 60); do p=$p/d$i; done; mkdir -p $p; echo x > $p/f", ":",
		"added "
		"d/d1/d2/d3/d4/d5/d6/d7/d8/d9/d10/d11/d12/d13/d14/d15/d16/d17/d18/d19/d20/d21/d22/"
		"d23/d24/d25/"
		"d26/d27/d28/d29/d30/d31/d32/d33/d34/d35/d36/d37/d38/d39/d40/d41/d42/d43/d44/d45/"
		"d46/d47/d48/d49/d50/"
		"d51/d52/d53/d54/d55/d56/d57/d58/d59/d60/f\n"},
	{"folder over a removed one", "mkdir -p a b; echo 1 > a/f; echo 2 > b/g", "rm -r b; mv a b",
		":", "renamed a -> b directory\nremoved b/g\n"},
	{"renamed file", "echo g > g; echo k > k", "mv g G; mv k d; echo more >> d", ":",
		"renamed g -> G\nrenamed k -> d\n"},
	{"renamed link", "ln -s nowhere l", "mv l m", ":", "renamed l -> m link\n"},
	{"file renamed over another", "echo a > a; echo b > b", "mv a b", ":",
		"removed a\nchanged b\n"},
	{"copied and removed is not renamed", "echo a > a", "cp a b; rm a", ":",
		"removed a\nadded b\n"},
	{"mode only", "echo b > b; chmod 644 b; mkdir d", "chmod 4755 b; chmod 700 d", ":",
		"mode b 0644 4755\nmode d 0755 0700 directory\n", true},
	{"owner only", "echo c > c", "chown 1:1 c", ":", "mode c owner\n", true},
	{"attribute only", "echo d > d",
		"/usr/bin/python3 -c \"import os; os.setxattr('d', 'user.x', b'1')\"", ":",
		"mode d attributes\n"},
	{"link target", "ln -s a s; ln -s x t", "ln -sfn b s; ln -sfn x t", ":",
		"changed s link\n"},
	{"file to folder", "echo e > e", "rm e; mkdir e; echo q > e/in", ":",
		"removed e\nadded e/in\n"},
	{"file to empty folder", "echo e > e", "rm e; mkdir e", ":",
		"removed e\nadded e directory\n"},
	{"folder to file", "mkdir -p d/e; echo 1 > d/e/f", "rm -r d; echo d > d", ":",
		"added d\nremoved d/e/f\n"},
	{"file to link", "echo f > f", "ln -sf x f", ":", "changed f file link\n"},
	{"pipe and socket", "echo a > a", "mkfifo p; rm a; mkfifo a", ":",
		"changed a file pipe\nadded p pipe\n", true},
	{"skipped",
		"mkdir -p .git/hooks s/node_modules/m; echo 1 > .git/index; echo 2 > "
		"s/node_modules/m/x",
		"echo 3 >> .git/index; echo 4 > .git/hooks/pre-commit; rm -r s/node_modules/m; "
		"echo 5 > s/a",
		":", "skipped .git 2 .git/hooks/pre-commit\nadded s/a\nskipped s/node_modules 1\n",
		true},
	{"runs on host",
		"echo '{\"scripts\":{\"a\":\"b\"},\"x\":1}' > package.json; mkdir k; cp "
		"package.json k",
		"echo '{\"scripts\":{\"a\":\"c\"},\"x\":1}' > package.json; "
		"echo '{\"scripts\":{\"a\":\"b\"},\"x\":2}' > k/package.json; "
		"mkdir -p .github/workflows; echo y > .github/workflows/t.yml; echo e > .envrc; "
		"echo m > Makefile",
		":",
		"added .envrc runs\nadded .github/workflows/t.yml runs\nadded Makefile\n"
		"changed k/package.json\nchanged package.json runs\n",
		true},
	{"host edits the same file", "echo a > a; echo b > b; echo c > c",
		"echo 1 >> a; rm b; echo 1 >> c", "echo 2 >> a; echo 2 >> b",
		"changed a host\nremoved b host\nchanged c\n", true},
	{"host adds to a removed folder", "mkdir d; echo a > d/a", "rm -r d", "echo n > d/n",
		"removed d/a host\nremoved d/n host\n", true},
	{"host removes what was changed", "echo a > a", "echo 1 >> a", "rm a", "added a host\n",
		true},
	{"host removes what was removed", "echo a > a", "rm a", "rm a", ""},
	{"host adds the same", "echo a > a", "echo n > n; echo m > m", "echo n > n; echo o > m",
		"changed m host\n", true},
	{"names of any bytes", "printf x > \"$(printf 'two\\nlines')\"",
		"rm two*; printf y > \"$(printf 'fake\\n0  passwd')\"; printf z > ./-", ":",
		"added -\nadded fake\n0  passwd\nremoved two\nlines\n"},
	{"what sorts between a folder and its contents", "mkdir a; echo 1 > a/f",
		"echo 2 > a-b; rm -r a; echo 3 > a.c", ":", "removed a/f\nadded a-b\nadded a.c\n"},
};

#endif
