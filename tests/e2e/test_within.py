"""`cloche create --within`: an account's image prefix holds for the place, not for the spelling."""
import json

import pytest

CLIMBS = ['/srv/images/../../etc', '/srv/images/..', '..', 'a/..', '/srv/images//../x']
OUTSIDE = ['/srv/image/x', 'a..b', '/etc']
ALLOWED = ['/srv/images/x..y', '/srv/images/none']


def create(cloche, tmp_path, image):
	within = tmp_path / 'within.json'
	within.write_text(json.dumps({'images': ['/srv/images/'], 'host_roots': []}))
	return cloche.call('create', '--within', str(within), '--image', image)


@pytest.mark.parametrize('image, says', [(i, "name it without '..'") for i in CLIMBS]
	+ [(i, 'this account may not use') for i in OUTSIDE] + [(i, 'No such file or directory') for i in ALLOWED])
def test_an_image_is_held_to_its_prefix(cloche, tmp_path, image, says):
	made = create(cloche, tmp_path, image)
	assert made.code == (125 if says.startswith('No such') else 126) and says in str(made.err), made
