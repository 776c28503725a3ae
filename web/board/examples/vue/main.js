import "rummikub-board";
import { createApp, ref } from "vue";

const app = createApp({
  setup() {
    const rack = ref(["R10", "J", "K5"]);
    const played = ref([]);
    const judge = ({ table }) => ({ isLegal: table.every(({ length }) => length >= 3), melds: table.map(({ length }) => ({ isLegal: length >= 3 })) });
    return { rack, played, judge, draw: () => (rack.value = [...rack.value, "B1"]) };
  },
  template: `
    <rummikub-board table="R7 R8 R9 | K3 B3 O3" :rack="rack" :judge="judge" @change="played = $event.detail.played">
      <button slot="actions" @click="draw">Draw</button>
    </rummikub-board>
    <p>You play: {{ played.join(" ") || "nothing" }}</p>`,
});
app.config.compilerOptions.isCustomElement = (tag) => tag === "rummikub-board";
app.mount("#root");
