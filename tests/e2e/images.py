# SPDX-License-Identifier: Apache-2.0
"""Images as files, made byte by byte, so that they may also be what no tool makes."""
import ctypes
import gzip
import hashlib
import io
import json
import os
import tarfile

INDEX = 'application/vnd.oci.image.index.v1+json'
MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
CONFIG = 'application/vnd.oci.image.config.v1+json'
LAYER = 'application/vnd.oci.image.layer.v1.tar'
ARCH = {'x86_64': 'amd64', 'aarch64': 'arm64'}[os.uname().machine]


def sha(data):
	return 'sha256:' + hashlib.sha256(data).hexdigest()


def entry(name, data=None, kind=tarfile.REGTYPE, **how):
	"""One member: a file with data, or of another kind."""
	info = tarfile.TarInfo(name)
	info.type, info.mode, info.mtime = kind, 0o644, 1_600_000_000
	for key, value in how.items():
		setattr(info, key, value)
	if data is not None:
		info.size = len(data)
	return info, data


def folder(name, mode=0o755, **how):
	return entry(name, kind=tarfile.DIRTYPE, mode=mode, **how)


def link(name, target, **how):
	return entry(name, kind=tarfile.SYMTYPE, linkname=target, **how)


def hard_link(name, target, **how):
	return entry(name, kind=tarfile.LNKTYPE, linkname=target, **how)


def tar(*entries):
	"""The bytes of a tar with these members."""
	out = io.BytesIO()
	with tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT) as file:
		for info, data in entries:
			file.addfile(info, None if data is None else io.BytesIO(data))
	return out.getvalue()


def members_alone(data):
	"""A tar without its end."""
	with tarfile.open(fileobj=io.BytesIO(data)) as file:
		last = file.getmembers()[-1]
		return data[:last.offset_data + (last.size + 511) // 512 * 512]


def big_tar(path, base, megabytes=160):
	"""Files of zeros, which the archive itself does not take room for."""
	with open(path, 'wb') as file:
		file.write(members_alone(base))
		for n in range(megabytes * 4):
			info, _ = entry(f'data/{n}', size=1 << 18)
			file.write(info.tobuf(tarfile.USTAR_FORMAT))
			file.seek(1 << 18, os.SEEK_CUR)
		file.write(bytes(1024))
	return path


def tar_of(root):
	"""The bytes of a tar of a folder, all of it root's."""
	out = io.BytesIO()

	def own(info):
		info.uid = info.gid = 0
		info.uname = info.gname = ''
		return info

	with tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT) as file:
		file.add(root, arcname='.', filter=own)
	return out.getvalue()


def zstd(data):
	"""By the library that every Debian has."""
	lib = ctypes.CDLL('libzstd.so.1')
	lib.ZSTD_compressBound.restype = lib.ZSTD_compress.restype = ctypes.c_size_t
	room = lib.ZSTD_compressBound(ctypes.c_size_t(len(data)))
	out = ctypes.create_string_buffer(room)
	size = lib.ZSTD_compress(out, ctypes.c_size_t(room), data, ctypes.c_size_t(len(data)), 3)
	return out.raw[:size]


PACKERS = {'': lambda data: data, '+gzip': lambda data: gzip.compress(data, 1), '+zstd': zstd}


class Layout:
	"""An OCI layout in a folder; what it holds can be spoilt afterwards."""

	def __init__(self, path):
		self.path, self.manifests = path, []
		(path / 'blobs' / 'sha256').mkdir(parents=True)
		(path / 'oci-layout').write_text('{"imageLayoutVersion":"1.0.0"}')

	def blob_path(self, digest):
		return self.path / 'blobs' / 'sha256' / digest.split(':')[1]

	def blob(self, data, kind):
		self.blob_path(sha(data)).write_bytes(data)
		return {'mediaType': kind, 'digest': sha(data), 'size': len(data)}

	def document(self, value, kind):
		return self.blob(json.dumps(value).encode(), kind)

	def image(self, *tars, packing='+gzip', config=None, arch=ARCH, diffs=None):
		"""The descriptor of a manifest over these layers."""
		layers = [self.blob(PACKERS[packing](data), LAYER + packing) for data in tars]
		about = self.document({'os': 'linux', 'architecture': arch, 'config': config or {},
			'rootfs': {'type': 'layers', 'diff_ids': diffs or [sha(data) for data in tars]}}, CONFIG)
		return self.document({'schemaVersion': 2, 'mediaType': MANIFEST, 'config': about, 'layers': layers}, MANIFEST)

	def add(self, descriptor, tag=None, platform=None):
		entry_ = dict(descriptor)
		if tag:
			entry_['annotations'] = {'org.opencontainers.image.ref.name': tag}
		if platform:
			entry_['platform'] = platform
		self.manifests.append(entry_)
		self.write()
		return self

	def write(self):
		(self.path / 'index.json').write_text(json.dumps({'schemaVersion': 2, 'mediaType': INDEX, 'manifests': self.manifests}))


def docker_folder(path, *tars, config=None):
	"""The same unpacked, under names that say nothing of what is in the files."""
	path.mkdir(exist_ok=True)
	layers = [f'layer{n}.tar' for n in range(len(tars))]
	for name, data in zip(layers, tars):
		(path / name).write_bytes(data)
	(path / 'config.json').write_text(json.dumps({'os': 'linux', 'architecture': ARCH, 'config': config or {},
		'rootfs': {'type': 'layers', 'diff_ids': [sha(data) for data in tars]}}))
	(path / 'manifest.json').write_text(json.dumps([{'Config': 'config.json', 'RepoTags': None, 'Layers': layers}]))
	return path


def docker_archive(path, *tars, config=None, tag='box:1'):
	"""What `docker save` wrote for years: a folder for each layer, one of them a link to another."""
	about = json.dumps({'os': 'linux', 'architecture': ARCH, 'config': config or {},
		'rootfs': {'type': 'layers', 'diff_ids': [sha(data) for data in tars]}}).encode()
	name = hashlib.sha256(about).hexdigest() + '.json'
	layers = [f'layer{n}/layer.tar' for n in range(len(tars))]
	manifest = json.dumps([{'Config': name, 'RepoTags': [tag], 'Layers': layers}]).encode()
	members = [entry(name, about), entry('manifest.json', manifest)]
	for n, data in enumerate(tars):
		members.append(folder(f'layer{n}'))
		members.append(entry(f'store{n}.tar', data))
		members.append(link(layers[n], f'../store{n}.tar'))
	path.write_bytes(tar(*members))
	return path
