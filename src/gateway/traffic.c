/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/traffic.h"

#include "gateway/bridge.h"
#include "gateway/gateway_internal.h"
#include "gateway/published.h"
#include "gateway/udp_flow.h"

void traffic_tell(const struct gateway *gw)
{
	struct traffic traffic = channel_told(gw->channel);

	bridge_all_count(gw->bridges, &traffic);
	udp_flows_count(gw->udp, &traffic);
	published_count(gw->published, &traffic);
	channel_frame(gw->channel,
		&(struct gateway_frame){.type = GATEWAY_BYTES_OUT, .id = traffic.bytes_out});
	channel_frame(gw->channel,
		&(struct gateway_frame){.type = GATEWAY_BYTES_IN, .id = traffic.bytes_in});
}
