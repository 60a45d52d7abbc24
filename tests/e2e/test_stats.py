# SPDX-License-Identifier: Apache-2.0
"""What a sandbox and each exec used: the record's figures against what the program itself did, live and afterwards."""
import json
import pathlib
import time

from harness import PYTHON, cgroup_bases, wait_for

# Burns CPU time as the process itself counts it, and waits for none.
BURN = 'import time\ndef burn(s):\n\tend = time.process_time() + s\n\twhile time.process_time() < end: pass\n'
NEVER_FALLS = ('cpu_ms', 'disk_read_bytes', 'disk_write_bytes', 'bytes_out', 'bytes_in')


def switches(pid):
	"""How often a process's threads went to sleep of their own."""
	count = 0
	for task in pathlib.Path(f'/proc/{pid}/task').iterdir():
		for line in (task / 'status').read_text().splitlines():
			if line.startswith('voluntary_ctxt_switches:'):
				count += int(line.split()[1])
	return count


def controllers(base):
	"""Of a hierarchy of version 2; others have no such file."""
	path = base / 'cgroup.controllers'
	return path.read_text().split() if path.exists() else []


def test_short_run_has_its_totals_in_one_sample(cloche):
	run = cloche.run('/bin/true')
	[sample] = run.record.events('sandbox.stats')
	assert sample['processes'] == 0 and sample['rss_bytes'] == 0 and sample['disk_write_bytes'] == 0
	assert 0 < sample['cpu_ms'] < 1000
	row = run.record.row()
	assert 0 <= row['cpu_ms'] <= sample['cpu_ms'] and row['disk_write_bytes'] == 0
	assert (row['pids_limited'], row['disk_full']) == (False, False)
	stats = run.record.show()['stats']
	assert stats['watched'] and (stats['samples'], stats['cpu_ms']) == (1, sample['cpu_ms'])
	assert 'Used ' in run.err


def test_figures_are_what_the_command_did(cloche):
	run = cloche.py(BURN + """
x = bytearray(64 << 20)
with open('/root/f', 'wb', buffering=0) as f:
	f.write(bytes(5 << 20))
burn(1.5)
import os
os.unlink('/root/f')
print(int(time.process_time() * 1000))
""")
	row, samples = run.record.row(), run.record.json('stats')
	assert 1500 <= int(run.out) <= row['cpu_ms'] < 2 * int(run.out) + 1000
	assert 5 << 20 <= row['disk_write_bytes'] < (5 << 20) + (1 << 20)
	assert 64 << 20 <= row['rss_max_bytes'] < 128 << 20
	assert len(samples) >= 2
	last = samples[-1]
	busy = samples[-2]
	assert busy['processes'] == 1 and 64 << 20 <= busy['rss_bytes'] < 128 << 20
	assert busy['disk_write_bytes'] >= 5 << 20 and 0 < busy['cpu_percent'] <= 120
	assert last['processes'] == 0 and last['cpu_ms'] >= row['cpu_ms']
	for name in NEVER_FALLS:
		values = [sample[name] for sample in samples]
		assert values == sorted(values), name
	stats = run.record.show()['stats']
	assert stats['cpu_ms'] == last['cpu_ms'] and stats['processes_seen'] == 1
	assert stats['rss_max_bytes'] == row['rss_max_bytes'] and stats['disk_write_bytes'] == last['disk_write_bytes']
	text = run.record.view('stats').splitlines()
	assert text[0].split()[:3] == ['TIME', 'CPU%', 'CPU'] and len(text) == len(samples) + 2
	assert text[-1].startswith('in all: ') and ' CPU, memory ' in text[-1]
	assert text[-1].removeprefix('in all: ') in ' '.join(run.err.split())


def test_what_children_did_counts_and_what_was_killed_too(cloche):
	run = cloche.sh('dd if=/dev/zero of=/root/f bs=1M count=3 2>&1; sync; sleep 60', options=('--timeout', '1500ms'))
	row = run.record.row()
	assert row['timed_out'] and 3 << 20 <= row['disk_write_bytes'] < 4 << 20
	assert row['cpu_ms'] < 1500


def test_limits_bring_the_controllers_figures(cloche):
	"""On a host whose controllers are version 1, too."""
	run = cloche.py("""
import threading
x = bytearray(100 << 20)
go = threading.Event()
threads = [threading.Thread(target=go.wait) for _ in range(20)]
for thread in threads: thread.start()
go.set()
""", options=('--memory', '512M', '--pids', '100'))
	assert run.code == 0
	stats = run.record.show()['stats']
	assert 100 << 20 <= stats['memory_peak_bytes'] <= 512 << 20
	assert stats['threads_peak'] is None or 21 <= stats['threads_peak'] <= 30
	sample = run.record.json('stats')[-1]
	assert sample['memory_peak_bytes'] == stats['memory_peak_bytes'] >= sample['memory_bytes'] > 0
	assert ' at most' in run.record.view('stats')


def test_an_exec_has_a_peak_of_its_own_where_version_2_counts(box):
	big, small = box.py('x = bytearray(100 << 20)').record.row(), box.sh('true').record.row()
	roots = [base for base in cgroup_bases() if 'memory' in controllers(base)]
	if roots:
		assert small['memory_peak_bytes'] < 50 << 20 and 100 << 20 <= big['memory_peak_bytes'] < 200 << 20
	else:
		assert (big['memory_peak_bytes'], small['memory_peak_bytes']) == (None, None)
	assert 100 << 20 <= big['rss_max_bytes'] < 200 << 20 and small['rss_max_bytes'] is None


def test_idle_sandbox_is_not_measured_and_not_woken(box):
	box.sh('true')
	[supervisor] = box.supervisor()

	def has_slept():
		before = switches(supervisor)
		time.sleep(2.2)
		return switches(supervisor) == before

	# Its last head is signed two seconds behind the last event.
	wait_for(has_slept, 'two seconds in which nothing wakes the supervisor', 20)
	[sample] = box.record.events('sandbox.stats')
	assert sample['processes'] == 0


def test_paused_sandbox_is_not_measured(box):
	running = box.start(PYTHON, '-c', BURN + 'burn(60)')
	wait_for(lambda: box.record.events('sandbox.stats'), 'the first sample')
	assert box.cloche.call('pause', box.id).code == 0
	count = len(box.record.events('sandbox.stats'))
	time.sleep(1.5)
	assert len(box.record.events('sandbox.stats')) == count
	assert box.cloche.call('wake', box.id).code == 0
	wait_for(lambda: len(box.record.events('sandbox.stats')) > count, 'a sample after waking')
	box.remove()
	running.communicate(timeout=30)


def test_daemon_is_measured_after_its_exec(box):
	run = box.sh('(' + PYTHON + ' -c "$1" >/dev/null 2>&1 </dev/null &) ; true', BURN + 'burn(60)')
	row = run.record.row()
	assert row['left_running'] == 1

	def later():
		return [sample for sample in box.record.json('stats') if sample['seq'] > row['seq']]

	wait_for(later, 'a sample')
	assert later()[0]['processes'] == 1 and later()[0]['cpu_percent'] > 0


def test_figures_go_on_when_it_is_resumed(box):
	box.py(BURN + 'burn(0.3)')
	assert box.cloche.call('suspend', box.id).code == 0
	assert box.cloche.call('resume', box.id).code == 0
	box.py(BURN + 'burn(0.3)')
	cpu = [sample['cpu_ms'] for sample in box.record.json('stats')]
	assert cpu == sorted(cpu) and cpu[-1] >= 600
	assert sum(row['cpu_ms'] for row in box.record.rows()) <= cpu[-1] == box.record.show()['stats']['cpu_ms']


def test_follow_prints_samples_as_they_come(sandbox, tmp_path):
	box = sandbox('--trace')
	with open(tmp_path / 'out', 'wb') as out:
		follower = box.cloche.start('stats', box.id, '--follow', '--jsonl', stdout=out)
	running = box.start(PYTHON, '-c', BURN + 'burn(60)')
	wait_for(lambda: (tmp_path / 'out').read_text().count('\n') >= 2, 'two samples')
	assert running.poll() is None
	box.cloche.call('stop', box.id)
	assert follower.wait(30) == 0
	running.communicate(timeout=30)
	lines = [json.loads(line) for line in (tmp_path / 'out').read_text().splitlines()]
	assert lines == box.record.json('stats')


def test_part_of_the_time(box):
	first, second = box.sh('true'), box.py(BURN + 'burn(1.2)')
	samples, of_second = box.record.json('stats'), second.record.json('stats')
	start, end = ([event['seq'] for event in box.record.events(kind) if event['exec'] == second.record.exec_id]
		for kind in ('exec.start', 'exec.end'))
	assert of_second == [sample for sample in samples if start[0] < sample['seq'] < end[0]] and len(of_second) >= 1
	assert all(sample not in first.record.json('stats') for sample in of_second)
	assert box.record.json('stats', '--since', str(start[0])) == of_second


def test_bytes_through_the_gateway(world, online):
	done = online.py("""
import socket
sock = socket.create_connection(('allowed.test', 18081))
sock.sendall(bytes(300000))
sock.shutdown(socket.SHUT_WR)
print(len(sock.makefile().read()))
""", options=('--net', 'open', *world.net))
	[sample] = done.record.json('stats')
	flows = done.record.events('net.flow') + done.record.events('net.udp')
	assert sample['bytes_out'] == sum(flow['bytes_out'] for flow in flows) >= 300000
	assert sample['bytes_in'] == sum(flow['bytes_in'] for flow in flows) >= int(done.out)
	# And of a connection that is open.
	box = online.create('--trace', '--net', 'open', *world.net)
	running = box.start(PYTHON, '-c', BURN + """
import socket
sock = socket.create_connection(('allowed.test', 18081))
sock.sendall(bytes(200000))
burn(60)
""")
	wait_for(lambda: [sample for sample in box.record.json('stats') if sample['bytes_out'] >= 200000], 'bytes of an open flow')
	assert box.record.events('net.flow') == []
	box.remove()
	running.communicate(timeout=30)
	none = online.run('/bin/true', options=('--net', 'none'))
	[sample] = none.record.json('stats')
	assert (sample['bytes_out'], sample['bytes_in']) == (None, None)
